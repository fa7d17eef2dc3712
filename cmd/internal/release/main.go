// Command release builds what a release consists of, the same to the bit from the same commit: archives, an image, checksums, an inventory, provenance and the installer.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := Options{Programs: programs, Platforms: platforms, Log: os.Stderr}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.Version, "version", "", "the version, such as v0.1.0 (required)")
	flags.StringVar(&o.Source, "source", ".", "the git repository; its HEAD is built")
	flags.StringVar(&o.Out, "out", "dist", "the folder to write; it must not exist, or be of an earlier release")
	flags.StringVar(&o.Key, "key", "", "a private key (Ed25519, PEM) that signs the provenance")
	flags.StringVar(&o.Builder, "builder", builder, "the URI of who builds, for the provenance")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return Build(ctx, o)
}
