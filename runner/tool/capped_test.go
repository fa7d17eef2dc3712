package tool

import (
	"bytes"
	"testing"
)

func TestAnOutputIsCappedAndGrowsOnce(t *testing.T) {
	var c capped
	line := bytes.Repeat([]byte("0123456789abcde\n"), 2<<10)
	for range 12<<20/len(line) + 1 {
		if n, err := c.Write(line); n != len(line) || err != nil {
			t.Fatalf("write = %d, %v: the program must not block", n, err)
		}
	}
	if s := c.String(); len(s) != maxExecOutput || c.dropped != int64(2<<20+len(line)) {
		t.Errorf("kept %d, dropped %d", len(s), c.dropped)
	}
	grown := testing.AllocsPerRun(3, func() {
		var c capped
		for range 100 {
			_, _ = c.Write(line)
		}
	})
	if grown > 10 { // by doubling up to a quarter of a megabyte, then once
		t.Errorf("%v allocations for 3 MB", grown)
	}
}

func TestAShortOutputKeepsNoRoom(t *testing.T) {
	var c capped
	_, _ = c.Write(bytes.Repeat([]byte("x"), suddenly+1))
	if s := c.String(); len(s) != suddenly+1 {
		t.Errorf("%d bytes", len(s))
	}
	_, _ = c.Write([]byte{0})
	if s := c.String(); s != "(binary output, 262146 bytes)" {
		t.Errorf("%q", s)
	}
}
