package record

import (
	"encoding/binary"
	"runtime"
)

// code is what a launcher, or the command of a shell, does, as instructions of this
// architecture; nil for others. They work at any address.
//
//	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
//	result[0] = landlock_restrict_self(rules, 0)                if it has rules
//	if result[0] == 0 {
//		result[1] = seccomp(SECCOMP_SET_MODE_FILTER, flags, filter) if it has a filter
//	}
//	sendmsg(socket, result, with the listener if there is one)
//	if result[0] != 0 {
//		exit_group(126)
//	}
//	close(the listener) if it has a filter
//
// Now only the caller has the listener: a system call that waits for a caller that is killed
// fails. A command returns to its shell. A launcher executes its program, and goes on only if
// that fails:
//
//	close_range(own, -1, CLOSE_RANGE_CLOEXEC)
//	result[0] = execve(argv[1], argv+2, the environment)
//	sendmsg(socket, result)
//	exit_group(126)
type code struct {
	// rules is the descriptor of the Landlock rules, none for none; socket that of the way
	// to the caller.
	rules, socket int
	// filtered reports whether there is a filter.
	filtered bool
	// own is the first descriptor that is not for the program, none for a command.
	own int
	// at is where the instructions are, the others where the filter is, the two messages,
	// the results, and the descriptor in the first message.
	at, filter, with, without, results, listener uint32
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

//nolint:gosec // descriptors, and addresses of a small file
func (c *code) amd64() []byte {
	var b []byte
	put := func(bytes ...byte) { b = append(b, bytes...) }
	num := func(op byte, n uint32) { b = binary.LittleEndian.AppendUint32(append(b, op), n) } // mov r32, n
	const eax, edi, esi, edx = 0xb8, 0xbf, 0xbe, 0xba
	// to is an instruction with an address relative to the one after it, and with more bytes
	// behind that address.
	to := func(address uint32, more []byte, op ...byte) {
		put(op...)
		next := c.at + uint32(len(b)+4+len(more))
		b = append(binary.LittleEndian.AppendUint32(b, address-next), more...)
	}
	call := func(n uint32) { num(eax, n); put(0x0f, 0x05) } // syscall
	// ahead is a jump (jcc rel8) to where the returned function is called.
	ahead := func(op byte) func() {
		put(op, 0)
		from := len(b)
		return func() { b[from-1] = byte(len(b) - from) }
	}
	const jnz, jns = 0x75, 0x79
	message := func(address uint32) { to(address, nil, 0x48, 0x8d, 0x35) } // lea rsi, [address]
	store := func(address uint32) { to(address, nil, 0x89, 0x05) }         // mov [address], eax
	send := func() {                                                       // what rsi points to
		num(edi, uint32(c.socket))
		put(0x31, 0xd2) // xor edx, edx
		call(46)
	}

	num(edi, 38)
	num(esi, 1)
	put(0x31, 0xd2, 0x45, 0x31, 0xd2, 0x45, 0x31, 0xc0) // xor edx, edx; xor r10d, r10d; xor r8d, r8d
	call(157)
	unbound, listens := func() {}, func() {}
	if c.rules != none {
		num(edi, uint32(c.rules))
		put(0x31, 0xf6) // xor esi, esi
		call(landlockRestrictSelf)
		store(c.results)
		put(0x85, 0xc0) // test eax, eax
		unbound = ahead(jnz)
	}
	if c.filtered {
		num(edi, 1)
		num(esi, newListener)
		to(c.filter, nil, 0x48, 0x8d, 0x15) // lea rdx, [filter]
		call(317)
		store(c.results + 4)
		store(c.listener)
		message(c.with)
		put(0x85, 0xc0) // test eax, eax
		listens = ahead(jns)
	}
	unbound()
	message(c.without)
	listens()
	send()
	to(c.results, []byte{0}, 0x83, 0x3d) // cmp dword [results], 0
	end := ahead(jnz)
	if c.filtered {
		to(c.listener, nil, 0x8b, 0x3d) // mov edi, [listener]
		call(3)
	}
	if c.own == none {
		put(0x31, 0xc0, 0xc3) // xor eax, eax; ret
	} else {
		num(edi, uint32(c.own))
		num(esi, 0xffffffff)
		num(edx, 4)
		call(436)
		put(0x48, 0x8b, 0x7c, 0x24, 0x10) // mov rdi, [rsp+16]: argv[1]
		put(0x48, 0x8d, 0x74, 0x24, 0x18) // lea rsi, [rsp+24]
		put(0x48, 0x8b, 0x04, 0x24)       // mov rax, [rsp]: argc
		put(0x48, 0x8d, 0x54, 0xc4, 0x10) // lea rdx, [rsp+rax*8+16]
		call(59)
		store(c.results)
		message(c.without)
		send()
	}
	end()
	num(edi, failed)
	call(231)
	return b
}

//nolint:gosec // descriptors, and addresses of a small file
func (c *code) arm64() []byte {
	var words []uint32
	put := func(w ...uint32) { words = append(words, w...) }
	num := func(r, n uint32) { put(0xd2800000 | n&0xffff<<5 | r) } // movz
	call := func(n uint32) { num(8, n); put(0xd4000001) }          // svc #0
	// address puts an address into a register (adr), relative to the instruction.
	address := func(r, address uint32) {
		n := address - (c.at + uint32(4*len(words)))
		put(0x10000000 | n&3<<29 | n>>2&0x7ffff<<5 | r)
	}
	store := func(to uint32) { address(9, to); put(0xb9000120) } // str w0, [x9]
	// ahead is a conditional jump to where the returned function is called.
	ahead := func(op uint32) func() {
		from := len(words)
		put(op)
		return func() { words[from] |= uint32(len(words)-from) << 5 }
	}
	const cbnz, bpl = 0x35000000, 0x54000005 // cbnz w0; b.pl
	send := func() {                         // what x1 points to
		num(0, uint32(c.socket))
		num(2, 0)
		call(211)
	}

	num(0, 38)
	num(1, 1)
	num(2, 0)
	num(3, 0)
	num(4, 0)
	call(167)
	unbound, listens := func() {}, func() {}
	if c.rules != none {
		num(0, uint32(c.rules))
		num(1, 0)
		call(landlockRestrictSelf)
		store(c.results)
		unbound = ahead(cbnz)
	}
	if c.filtered {
		num(0, 1)
		num(1, newListener)
		address(2, c.filter)
		call(277)
		store(c.results + 4)
		store(c.listener)
		address(1, c.with)
		put(0x7100001f) // cmp w0, #0
		listens = ahead(bpl)
	}
	unbound()
	address(1, c.without)
	listens()
	send()
	address(9, c.results)
	put(0xb9400120) // ldr w0, [x9]
	end := ahead(cbnz)
	if c.filtered {
		address(9, c.listener)
		put(0xb9400120) // ldr w0, [x9]
		call(57)
	}
	if c.own == none {
		num(0, 0)
		put(0xd65f03c0) // ret
	} else {
		num(0, uint32(c.own))
		put(0x92800001) // mov x1, #-1
		num(2, 4)
		call(436)
		put(0xf9400be0) // ldr x0, [sp, #16]: argv[1]
		put(0x910063e1) // add x1, sp, #24
		put(0xf94003e9) // ldr x9, [sp]: argc
		put(0x910043e2) // add x2, sp, #16
		put(0x8b090c42) // add x2, x2, x9, lsl #3
		call(221)
		store(c.results)
		address(1, c.without)
		send()
	}
	end()
	num(0, failed)
	call(94)
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}
