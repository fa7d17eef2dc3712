package host

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

func wireOf(t testing.TB, e *toolpb.CallEvent) []byte {
	t.Helper()
	b, err := proto.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func output(chunk string) *toolpb.CallEvent {
	return &toolpb.CallEvent{Event: &toolpb.CallEvent_Output{Output: &toolpb.Output{Chunk: []byte(chunk)}}}
}

// FuzzFrame holds the short way against protobuf's own: an event is read as the
// same thing, or as a mistake by both.
func FuzzFrame(f *testing.F) {
	for _, e := range []*toolpb.CallEvent{
		output(""), output("text"), output(strings.Repeat("x", 300)),
		{},
		{Event: &toolpb.CallEvent_Progress{Progress: &toolpb.Progress{Text: "p"}}},
		{Event: &toolpb.CallEvent_Result{Result: &toolpb.Result{Text: "r"}}},
		{Event: &toolpb.CallEvent_Ask{Ask: &toolpb.Ask{Id: 1}}},
	} {
		f.Add(wireOf(f, e))
	}
	two := append(wireOf(f, output("a")), wireOf(f, output("b"))...)
	f.Add(two)
	f.Add(append(wireOf(f, output("a")), 0x08, 0x01))
	f.Add([]byte{0x12, 0x03, 0x0a, 0x05, 'x'})
	f.Add([]byte{0x12, 0x06, 0x0a, 0x01, 'x', 0x0a, 0x01, 'y'})
	c := newCodec()
	f.Fuzz(func(t *testing.T, b []byte) {
		var want toolpb.CallEvent
		wantErr := proto.Unmarshal(b, &want)
		var got frame
		err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &got)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%x: error %v, protobuf says %v", b, err, wantErr)
		}
		if err != nil {
			return
		}
		defer got.free()
		if got.output {
			if want.GetOutput() == nil || !bytes.Equal(got.chunk, want.GetOutput().GetChunk()) {
				t.Errorf("%x: output %q, protobuf says %v", b, got.chunk, &want)
			}
			return
		}
		if !proto.Equal(&got.event, &want) {
			t.Errorf("%x: %v, protobuf says %v", b, &got.event, &want)
		}
	})
}

func TestAKeptTextGrowsOnceAndGivesRoomBack(t *testing.T) {
	k := keeper{limit: 10 << 20}
	chunk := bytes.Repeat([]byte("x"), 32<<10)
	for range 10 {
		k.add(chunk)
	}
	if c := k.text.Cap(); c < 10<<20 {
		t.Errorf("room for %d bytes, want the whole limit at once", c)
	}
	if s := k.string(); len(s) != 320<<10 || k.dropped != 0 {
		t.Errorf("%d bytes, %d dropped", len(s), k.dropped)
	}
	small := keeper{limit: 5}
	if kept := small.add([]byte("1234567")); string(kept) != "12345" || small.dropped != 2 || small.string() != "12345" {
		t.Errorf("kept %q, dropped %d", kept, small.dropped)
	}
	if kept := small.add([]byte("89")); len(kept) != 0 || small.dropped != 4 || small.text.Cap() > 64 {
		t.Errorf("kept %q, dropped %d, room %d", kept, small.dropped, small.text.Cap())
	}
}
