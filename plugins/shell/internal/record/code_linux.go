package record

import (
	"encoding/binary"
	"runtime"
)

// code is what a launcher does, as instructions of this architecture; nil for others:
//
//	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
//	result[0] = landlock_restrict_self(rules, 0)           only with rules
//	if result[0] == 0 {
//		result[1] = seccomp(SECCOMP_SET_MODE_FILTER, flags, program)
//	}
//	sendmsg(socket, the results, with the listener if there is one)
//	if result[0] == 0 {
//		close_range(own, -1, CLOSE_RANGE_CLOEXEC)
//		result[0] = execve(argv[1], argv+2, the environment)  returns only if it fails
//		sendmsg(socket, the results)
//	}
//	exit_group(126)
type code struct {
	// rules is the descriptor of the Landlock rules, negative for none; socket that of the
	// way to the caller; own the first of those that are not for the program.
	rules, socket, own int
	// program, with and without are the addresses of the filter and of the two messages;
	// results that of the results, listener that of the descriptor in the first message.
	program, with, without, results, listener uint32
}

const (
	landlockRestrictSelf = 446
	// newListener makes a listener, whose notifications only a signal that kills interrupts
	// once they are received (Linux 5.19).
	newListener = 1<<3 | 1<<5
	failed      = 126
)

func (c *code) bytes() []byte {
	switch runtime.GOARCH {
	case "amd64":
		return c.amd64()
	case "arm64":
		return c.arm64()
	}
	return nil
}

func (c *code) amd64() []byte {
	var b []byte
	put := func(bytes ...byte) { b = append(b, bytes...) }
	num := func(op byte, n uint32) { b = binary.LittleEndian.AppendUint32(append(b, op), n) } // mov r32, n
	const eax, edi, esi, edx = 0xb8, 0xbf, 0xbe, 0xba
	at := func(address uint32, op ...byte) { b = binary.LittleEndian.AppendUint32(append(b, op...), address) }
	call := func(n uint32) { num(eax, n); put(0x0f, 0x05) }
	// ahead is a jump (jcc rel8) to where the returned function is called.
	ahead := func(op byte) func() {
		put(op, 0)
		from := len(b)
		return func() { b[from-1] = byte(len(b) - from) }
	}
	const jnz, jns = 0x75, 0x79
	send := func() { // what esi points to
		num(edi, uint32(c.socket)) //nolint:gosec // a descriptor
		put(0x31, 0xd2)            // xor edx, edx
		call(46)
	}

	num(edi, 38)
	num(esi, 1)
	put(0x31, 0xd2, 0x45, 0x31, 0xd2, 0x45, 0x31, 0xc0) // xor edx, edx; xor r10d, r10d; xor r8d, r8d
	call(157)
	unbound := func() {}
	if c.rules >= 0 {
		num(edi, uint32(c.rules))
		put(0x31, 0xf6) // xor esi, esi
		call(landlockRestrictSelf)
		at(c.results, 0x89, 0x04, 0x25) // mov [results], eax
		put(0x85, 0xc0)                 // test eax, eax
		unbound = ahead(jnz)
	}
	num(edi, 1)
	num(esi, newListener)
	num(edx, c.program)
	call(317)
	at(c.results+4, 0x89, 0x04, 0x25) // mov [results+4], eax
	at(c.listener, 0x89, 0x04, 0x25)
	num(esi, c.with)
	put(0x85, 0xc0) // test eax, eax
	listens := ahead(jns)
	unbound()
	num(esi, c.without)
	listens()
	send()
	at(c.results, 0x83, 0x3c, 0x25) // cmp dword [results], 0
	put(0)
	end := ahead(jnz)
	num(edi, uint32(c.own)) //nolint:gosec // a descriptor
	num(esi, 0xffffffff)
	num(edx, 4)
	call(436)
	put(0x48, 0x8b, 0x7c, 0x24, 0x10) // mov rdi, [rsp+16]: argv[1]
	put(0x48, 0x8d, 0x74, 0x24, 0x18) // lea rsi, [rsp+24]
	put(0x48, 0x8b, 0x04, 0x24)       // mov rax, [rsp]: argc
	put(0x48, 0x8d, 0x54, 0xc4, 0x10) // lea rdx, [rsp+rax*8+16]
	call(59)
	at(c.results, 0x89, 0x04, 0x25)
	num(esi, c.without)
	send()
	end()
	num(edi, failed)
	call(231)
	return b
}

func (c *code) arm64() []byte {
	var words []uint32
	put := func(w ...uint32) { words = append(words, w...) }
	// num puts a number into x0 to x30: movz, and movk for its upper half.
	num := func(r, n uint32) {
		put(0xd2800000 | n&0xffff<<5 | r)
		if n>>16 != 0 {
			put(0xf2a00000 | n>>16<<5 | r)
		}
	}
	call := func(n uint32) { num(8, n); put(0xd4000001) }
	// store writes w0 to an address.
	store := func(address uint32) { num(9, address); put(0xb9000120) }
	// ahead is a conditional jump to where the returned function is called.
	ahead := func(op uint32) func() {
		from := len(words)
		put(op)
		return func() { words[from] |= uint32(len(words)-from) << 5 } //nolint:gosec // a few instructions
	}
	const cbnz, bpl = 0x35000000, 0x54000005 // cbnz w0; b.pl
	send := func() {                         // what x1 points to
		num(0, uint32(c.socket)) //nolint:gosec // a descriptor
		num(2, 0)
		call(211)
	}

	num(0, 38)
	num(1, 1)
	num(2, 0)
	num(3, 0)
	num(4, 0)
	call(167)
	unbound := func() {}
	if c.rules >= 0 {
		num(0, uint32(c.rules))
		num(1, 0)
		call(landlockRestrictSelf)
		store(c.results)
		unbound = ahead(cbnz)
	}
	num(0, 1)
	num(1, newListener)
	num(2, c.program)
	call(277)
	store(c.results + 4)
	store(c.listener)
	num(1, c.with)
	put(0x7100001f) // cmp w0, #0
	listens := ahead(bpl)
	unbound()
	num(1, c.without)
	listens()
	send()
	num(9, c.results)
	put(0xb9400120) // ldr w0, [x9]
	end := ahead(cbnz)
	num(0, uint32(c.own)) //nolint:gosec // a descriptor
	put(0x92800001)       // mov x1, #-1
	num(2, 4)
	call(436)
	put(0xf9400be0) // ldr x0, [sp, #16]: argv[1]
	put(0x910063e1) // add x1, sp, #24
	put(0xf94003e9) // ldr x9, [sp]: argc
	put(0x910043e2) // add x2, sp, #16
	put(0x8b090c42) // add x2, x2, x9, lsl #3
	call(221)
	store(c.results)
	num(1, c.without)
	send()
	end()
	num(0, failed)
	call(94)
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}
