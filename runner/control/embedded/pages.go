package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
)

// The layout of a database of bbolt: pages of a fixed size, in the byte order of
// the machine. See package go.etcd.io/bbolt/internal/common.
const (
	pageHeader  = 16 // id, flags, count, overflow
	pageElement = 16 // of a branch and of a leaf
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	branchPage  = 0x01
	leafPage    = 0x02
	bucketValue = 0x01 // the value of an element of a leaf is a bucket
	// deepest bounds the levels of pages: each holds at least two of the next.
	deepest = 64
)

// checkPages reads a database that is not open, and reports the first page that
// is not valid. The database itself reports damage by panics in its own
// goroutines, which end the process.
func checkPages(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	c := pageCheck{file: f}
	root, err := c.meta()
	if err != nil {
		return err
	}
	c.seen = make([]bool, c.pages)
	return c.tree(root, nil, nil, 0)
}

// pageCheck is a walk over all pages of a database.
type pageCheck struct {
	file  *os.File
	size  uint64 // of a page
	pages uint64 // how many are in use
	seen  []bool // pages that have their place
}

var errPage = errors.New("the database is damaged")

func damagedPage(id uint64, format string, args ...any) error {
	return fmt.Errorf("%w: page %d %s", errPage, id, fmt.Sprintf(format, args...))
}

// meta returns the root of the newest of the two states that the file has.
func (c *pageCheck) meta() (root uint64, err error) {
	newest := uint64(0)
	for _, at := range c.metaPlaces() {
		b := make([]byte, pageHeader+metaSize)
		if _, err := c.file.ReadAt(b, at); err != nil {
			continue
		}
		m := b[pageHeader:]
		u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
		sum := fnv.New64a()
		_, _ = sum.Write(m[:metaSize-8]) // never fails
		if u32(m) != metaMagic || u64(m[metaSize-8:]) != sum.Sum64() {
			continue
		}
		if tx := u64(m[48:]); c.size == 0 || tx >= newest {
			newest, c.size, c.pages, root = tx, uint64(u32(m[8:])), u64(m[40:]), u64(m[16:])
		}
	}
	info, err := c.file.Stat()
	if err != nil {
		return 0, err
	}
	if c.size < 512 || c.size > 1<<20 || c.pages > uint64(info.Size())/c.size { //nolint:gosec // a size is positive
		return 0, fmt.Errorf("%w: its first two pages are not those of a database, or it has been cut short", errPage)
	}
	return root, nil
}

// metaPlaces is where the two meta pages may be: the second is at the page size
// in the first, or at the page size of a machine.
func (*pageCheck) metaPlaces() []int64 { return []int64{0, 4 << 10, 8 << 10, 16 << 10, 64 << 10} }

// page reads a page, with those that it continues on.
func (c *pageCheck) page(id uint64) ([]byte, error) {
	if id < 2 || id >= c.pages {
		return nil, damagedPage(id, "is outside of the %d pages", c.pages)
	}
	b := make([]byte, c.size)
	if _, err := c.file.ReadAt(b, int64(id*c.size)); err != nil { //nolint:gosec // within the file
		return nil, damagedPage(id, "cannot be read: %v", err)
	}
	if got := binary.NativeEndian.Uint64(b); got != id {
		return nil, damagedPage(id, "is not itself")
	}
	more := uint64(binary.NativeEndian.Uint32(b[12:]))
	if id+more >= c.pages {
		return nil, damagedPage(id, "continues outside of the %d pages", c.pages)
	}
	for n := id; n <= id+more; n++ {
		if c.seen[n] {
			return nil, damagedPage(n, "is used twice")
		}
		c.seen[n] = true
	}
	if more == 0 {
		return b, nil
	}
	b = make([]byte, (1+more)*c.size)
	if _, err := c.file.ReadAt(b, int64(id*c.size)); err != nil { //nolint:gosec // within the file
		return nil, damagedPage(id, "cannot be read: %v", err)
	}
	return b, nil
}

// tree checks a page and all below it, whose keys are from least on and before most.
func (c *pageCheck) tree(id uint64, least, most []byte, depth int) error {
	b, err := c.page(id)
	if err != nil {
		return err
	}
	if depth > deepest {
		return damagedPage(id, "is too far below its root")
	}
	return c.content(id, b, least, most, depth)
}

// content checks what is in a page, or in a bucket that is small enough to be in
// the page of another.
func (c *pageCheck) content(id uint64, b, least, most []byte, depth int) error {
	kind, count := binary.NativeEndian.Uint16(b[8:]), int(binary.NativeEndian.Uint16(b[10:]))
	if kind != branchPage && kind != leafPage || pageHeader+count*pageElement > len(b) || kind == branchPage && count == 0 {
		return damagedPage(id, "is neither a branch nor a leaf")
	}
	keys := make([][]byte, count)
	for i := range count {
		key, ok := elementKey(b, i, kind)
		if !ok {
			return damagedPage(id, "has an element outside of itself")
		}
		if i > 0 && bytes.Compare(keys[i-1], key) >= 0 || i == 0 && bytes.Compare(least, key) > 0 || most != nil && bytes.Compare(key, most) >= 0 {
			return damagedPage(id, "has its keys in disorder")
		}
		keys[i] = key
	}
	for i, key := range keys {
		next := most
		if i+1 < count {
			next = keys[i+1]
		}
		var err error
		if kind == branchPage {
			err = c.tree(binary.NativeEndian.Uint64(b[pageHeader+i*pageElement+8:]), key, next, depth+1)
		} else {
			err = c.value(id, b, i, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// elementKey is the key of an element; the end of it and of its value is inside of
// the page.
func elementKey(b []byte, i int, kind uint16) (key []byte, ok bool) {
	at := pageHeader + i*pageElement
	u32 := binary.NativeEndian.Uint32
	pos, size, value := u32(b[at:]), u32(b[at+4:]), uint32(0)
	if kind == leafPage {
		pos, size, value = u32(b[at+4:]), u32(b[at+8:]), u32(b[at+12:])
	}
	from := uint64(at) + uint64(pos) //nolint:gosec // small
	if end := from + uint64(size) + uint64(value); end > uint64(len(b)) || size == 0 {
		return nil, false
	}
	return b[from : from+uint64(size)], true
}

// value checks the value of an element of a leaf, if it is a bucket.
func (c *pageCheck) value(id uint64, b []byte, i, depth int) error {
	at := pageHeader + i*pageElement
	u32 := binary.NativeEndian.Uint32
	if u32(b[at:])&bucketValue == 0 {
		return nil
	}
	from := at + int(u32(b[at+4:])) + int(u32(b[at+8:]))
	v := b[from : from+int(u32(b[at+12:]))]
	if len(v) < pageHeader {
		return damagedPage(id, "has a bucket without a root")
	}
	if root := binary.NativeEndian.Uint64(v); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	if len(v) < 2*pageHeader || depth > deepest {
		return damagedPage(id, "has a bucket without content")
	}
	return c.content(id, v[pageHeader:], nil, nil, depth+1)
}
