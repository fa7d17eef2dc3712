// Command agentctl-sandbox builds the sandbox it finds itself in and stays as its init. agentctl starts it.
//
// It is process 1 of namespaces of its own. It reads from the runner what the
// sandbox is to be (package spec), assembles a root of just that, and then starts,
// signals and collects programs on request until the socket to the runner ends;
// with it ends everything inside. It keeps its capabilities inside its own user
// namespace, for later mounts; the one thread that starts programs has none, and
// bears no_new_privs, Landlock and seccomp, which programs inherit from it: a
// start costs a plain fork and exec.
package main

import "os"

func main() { os.Exit(run()) }
