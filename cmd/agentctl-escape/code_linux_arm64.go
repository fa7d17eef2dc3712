package main

// elfMachine is this architecture in the header of a program.
const elfMachine = 183

// foreignCode is empty: this architecture has no other calls that a program could make.
var foreignCode []foreign
