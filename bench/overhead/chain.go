package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// chain is what a journal looks like from outside: its lines, and that each
// names the one before.
type chain struct {
	run, head string
	events    int64
	types     map[string]int
}

// readChain reads the journal in a folder by what its documentation says, and by
// none of the code that wrote it.
func readChain(dir string) (*chain, error) {
	files, err := filepath.Glob(filepath.Join(dir, "events-*.jsonl"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	c := &chain{types: map[string]int{}}
	for _, path := range files {
		if err := c.read(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if c.events == 0 {
		return nil, fmt.Errorf("%s: no events", dir)
	}
	return c, nil
}

func (c *chain) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if err := c.line(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

var errChain = errors.New("the chain is broken")

func (c *chain) line(text []byte) error {
	var e struct {
		Seq       int64
		Run, Type string
		Prev      string
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	if c.run == "" {
		c.run = e.Run
	}
	if e.Seq != c.events+1 || e.Prev != c.head || e.Run != c.run {
		return fmt.Errorf("%w: event %d of run %s after event %d of run %s", errChain, e.Seq, e.Run, c.events, c.run)
	}
	sum := sha256.Sum256(text)
	c.events, c.head = e.Seq, "sha256:"+hex.EncodeToString(sum[:])
	c.types[e.Type]++
	return nil
}
