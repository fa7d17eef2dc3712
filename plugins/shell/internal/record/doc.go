// Package record records what a command does while it runs: what it executes, which files it
// changes, where it connects, and which of that its binding does not allow.
//
// The kernel reports each system call of that kind and waits until it is answered (seccomp
// user notification). The answer is always to continue: the record decides nothing. Whether
// a call succeeds is up to Landlock, whose rules are compared here with what is attempted.
// What is compared is read from the memory of the process that calls, which can change it
// before the kernel reads it again: the record reports, Landlock decides.
//
//	Launcher   applies rules and the filter to a process, then executes a program
//	Watch      answers the notifications of one command and keeps what they report
//	Rights     the rules of the command, as the kernel has them
package record
