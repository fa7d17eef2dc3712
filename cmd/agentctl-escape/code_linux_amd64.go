package main

// elfMachine is this architecture in the header of a program.
const elfMachine = 62

// foreignCode are programs of machine code that ask for their process id by a call
// that belongs to another architecture, and then end well.
var foreignCode = []foreign{
	{"int 0x80", []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xbf, 0, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05}},
	{"x32", []byte{0xb8, 39, 0, 0, 0x40, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x78, 0x0c, 0xbf, 0, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05, 0xf4}},
}
