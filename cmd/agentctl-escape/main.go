// Command agentctl-escape tries to get out of the sandbox in which it is started, in every known way, and reports which
// ways are open. agentctl doctor and the tests start it.
//
// It is a program of its own so that agentctl-sandbox, which every sandbox trusts, contains nothing that attacks one.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
