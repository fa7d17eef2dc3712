// Program mirror copies a bucket into a folder.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	from := flag.String("from", "", "bucket to copy")
	to := flag.String("to", ".", "folder to write")
	workers := flag.Int("workers", 8, "copies at a time")
	timeout := flag.Duration("timeout", 30*time.Second, "time of one copy")
	dry := flag.Bool("dry-run", false, "print what would be copied")
	flag.Parse()
	if *from == "" {
		fmt.Fprintln(os.Stderr, "mirror: -from is missing")
		os.Exit(2)
	}
	fmt.Println(*from, *to, *workers, *timeout, *dry)
}
