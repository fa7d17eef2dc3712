// Command golden compares two builds of agentctl: both play the same runs, and what they print, write and exit with has to be the same.
//
// It knows only the programs and what they write. The model is a server of
// package modeltest, the tools are the shipped ones and small scripts. Both builds
// play each case in the same folder, one after the other, so that no path differs in
// its length.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == wrapWord {
		os.Exit(wrap(os.Args[2:]))
	}
	if program := storyPrograms()[filepath.Base(os.Args[0])]; program != nil {
		program()
		return
	}
	os.Exit(compareBuilds(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
