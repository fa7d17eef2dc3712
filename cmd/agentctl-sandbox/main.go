// Command agentctl-sandbox builds the sandbox it finds itself in and stays as its init. agentctl starts it.
//
// It is process 1 of namespaces of its own. It reads from the runner the
// description of the sandbox (package spec), assembles a root of just that, and
// then starts, signals and reaps programs on request until the socket to the
// runner is closed; then everything inside is killed. It keeps its capabilities
// inside its own user namespace, for later mounts; the one thread that starts
// programs has none, and has no_new_privs, Landlock and seccomp, which programs
// inherit from it: a start costs a plain fork and exec.
package main

import "os"

func main() { os.Exit(run()) }
