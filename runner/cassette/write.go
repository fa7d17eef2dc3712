package cassette

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// hashKey comes before the hash of a line, and closing after it.
const (
	hashKey = `,"hash":"sha256:`
	closing = `"}`
	hashLen = len(hashKey) + 2*sha256.Size + len(closing)
)

// chain hashes one line after the other.
type chain struct {
	head  string
	lines int
}

// sum is the hash of a line, given without its own hash, that follows head.
func (c *chain) sum(line []byte) string {
	h := sha256.New()
	h.Write([]byte(c.head))
	h.Write(line)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// add closes an object and makes it the next line.
func (c *chain) add(w io.Writer, object []byte) error {
	line, ok := bytes.CutSuffix(object, []byte("}"))
	if !ok || len(line) < 2 {
		return fmt.Errorf("line %d of the cassette is no object", c.lines+1)
	}
	if len(line)+hashLen > MaxLine {
		return fmt.Errorf("line %d of the cassette would have %d bytes, at most %d", c.lines+1, len(line)+hashLen, MaxLine)
	}
	c.head = c.sum(line)
	c.lines++
	_, err := fmt.Fprintf(w, `%s,"hash":"%s"}`+"\n", line, c.head)
	return err
}

// Write writes the whole file. The same recording gives the same bytes.
func (c *Cassette) Write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	ch := &chain{}
	header := c.Header
	header.Cassette = Format
	objects := []any{header, map[string]json.RawMessage{"plan": c.Plan}}
	for _, t := range c.Tools {
		objects = append(objects, map[string]Tool{"tool": t})
	}
	for _, b := range c.Blobs {
		objects = append(objects, map[string]Blob{"blob": b})
	}
	objects = append(objects, map[string]Facts{"facts": c.Facts})
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, o := range objects {
		buf.Reset()
		if err := enc.Encode(o); err != nil {
			return fmt.Errorf("write the cassette: %w", err)
		}
		if err := ch.add(out, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))); err != nil {
			return fmt.Errorf("write the cassette: %w", err)
		}
	}
	var line []byte
	for _, e := range c.Events {
		e.Prev = "" // the journal's own chain
		var err error
		if line, err = e.AppendJSON(line[:0]); err == nil {
			err = ch.add(out, line)
		}
		if err != nil {
			return fmt.Errorf("write the cassette: %w", err)
		}
	}
	last, err := json.Marshal(map[string]end{"end": {Lines: ch.lines + 1, Head: ch.head}})
	if err == nil {
		err = ch.add(out, last)
	}
	if err != nil {
		return fmt.Errorf("write the cassette: %w", err)
	}
	return out.Flush()
}

// Place checks whether a cassette can be written at path, before anything is recorded, and
// returns the file that will be replaced: links are followed.
func Place(path string) (file string, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	case isLink(path):
		return "", fmt.Errorf("%s is a link to a file that does not exist", path)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return "", fmt.Errorf("folder %s: %w", filepath.Dir(path), pathErr.Err)
	}
	if err != nil {
		return "", err
	}
	return path, errors.Join(f.Close(), os.Remove(f.Name()))
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// temporary is how a cassette is called until it is complete.
const temporary = ".cassette-*"

// Save writes the cassette to a file that Place has returned, durably and atomically: a
// reader finds the whole old file or the whole new one. Only its owner may read a new
// file; an existing file keeps its mode.
func (c *Cassette) Save(file string) (err error) {
	dir := filepath.Dir(file)
	f, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return fmt.Errorf("write the cassette: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the cassette: %w", errors.Join(err, os.Remove(f.Name())))
		}
	}()
	if old, statErr := os.Stat(file); statErr == nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = c.Write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), file); err != nil {
		return err
	}
	// The cassette is complete: it is kept although its name may not be durable.
	if d, openErr := os.Open(dir); openErr == nil { //nolint:gosec // the user names the file
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
