package main

import "encoding/binary"

// elf wraps machine code of this architecture into the smallest program.
func elf(code []byte) []byte {
	const base, headers = 0x400000, 64 + 56
	b := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	put16 := func(n ...uint16) {
		for _, v := range n {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
	}
	put32 := func(n ...uint32) {
		for _, v := range n {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	put64 := func(n ...uint64) {
		for _, v := range n {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	put16(2, elfMachine) // an executable
	put32(1)
	put64(base+headers, 64, 0) // entry, program headers, no sections
	put32(0)
	put16(64, 56, 1, 64, 0, 0)
	put32(1, 5) // one segment, to read and run
	size := uint64(headers + len(code))
	put64(0, base, base, size, size, 0x1000)
	return append(b, code...)
}
