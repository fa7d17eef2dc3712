package host

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"agentctl.dev/agentctl/plugins/sdk/toolpb"
)

// frame is a CallEvent as it came. The bytes of an output lie in the buffer in
// which the connection read them: a copy of each would be garbage ten times the
// size of what is kept, and a flood would double the memory of the host.
type frame struct {
	chunk  []byte
	output bool
	event  toolpb.CallEvent
	buffer mem.Buffer
}

// free gives the buffer back; chunk is void then.
func (f *frame) free() {
	if f.buffer != nil {
		f.buffer.Free()
	}
	f.chunk, f.buffer, f.output = nil, nil, false
}

// Numbers of the fields on the way to the bytes of an output.
const (
	fieldOutput = 2 // of CallEvent
	fieldChunk  = 1 // of Output
)

// outputChunk returns the bytes of an event that is an output and nothing else.
func outputChunk(event []byte) (chunk []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(event)
	if n < 0 || number != fieldOutput || kind != protowire.BytesType {
		return nil, false
	}
	output, m := protowire.ConsumeBytes(event[n:])
	if m < 0 || n+m != len(event) {
		return nil, false
	}
	if len(output) == 0 {
		return nil, true
	}
	number, kind, n = protowire.ConsumeTag(output)
	if n < 0 || number != fieldChunk || kind != protowire.BytesType {
		return nil, false
	}
	chunk, m = protowire.ConsumeBytes(output[n:])
	return chunk, m >= 0 && n+m == len(output)
}

// codec is gRPC's own but for frames.
type codec struct {
	encoding.CodecV2
	pool mem.BufferPool
}

// newCodec makes a codec whose buffers fit an output chunk of 32 KB in its message: gRPC's
// own next size is 1 MiB.
func newCodec() codec {
	return codec{encoding.GetCodecV2(proto.Name), mem.NewTieredBufferPool(1<<10, toolpb.MaxChunk+1<<10, 256<<10+1<<10)}
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	f.buffer = data.MaterializeToBuffer(c.pool)
	if f.chunk, f.output = outputChunk(f.buffer.ReadOnlyData()); f.output {
		return nil
	}
	f.free()
	f.event.Reset()
	if err := c.CodecV2.Unmarshal(data, &f.event); err != nil {
		return fmt.Errorf("event of a call: %w", err)
	}
	return nil
}
