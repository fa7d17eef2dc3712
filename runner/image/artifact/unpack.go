package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
)

// tree are the files of an artifact.
type tree struct {
	files map[string]file
	// dirs are the folders, those included that only a path of a file names.
	dirs map[string]bool

	left    int64
	entries int
}

type file struct {
	content    []byte
	executable bool
}

// tree unpacks the layers in their order. A file of a later layer replaces one of an
// earlier layer.
func (b blobs) tree(top digest.Digest) (*tree, error) {
	m, err := b.manifest(top, func(d digest.Digest) error {
		if _, ok := b[d]; !ok {
			return wrong("it has no manifest %s", d)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t := &tree{files: map[string]file{}, dirs: map[string]bool{}, left: maxUnpacked}
	for _, l := range m.Layers {
		content, ok := b[l.Digest]
		if !ok {
			return nil, wrong("it has no layer %s", l.Digest)
		}
		if err := t.layer(l, content); err != nil {
			return nil, err
		}
	}
	if len(t.files) == 0 {
		return nil, wrong("it holds no files")
	}
	return t, nil
}

// Annotations by which a layer says that it is one file, or a folder.
const (
	titleOf  = "org.opencontainers.image.title"
	unpackIt = "io.deis.oras.content.unpack"
)

// layer adds what a layer holds: one file that an annotation names, or a tar.
func (t *tree) layer(d descriptor, content []byte) error {
	title := d.Annotations[titleOf]
	if title != "" && d.Annotations[unpackIt] != "true" && !strings.HasSuffix(d.MediaType, "tar+gzip") {
		return t.add(path.Clean(title), title, int64(len(content)), false, bytes.NewReader(content), map[string]bool{})
	}
	if bytes.HasPrefix(content, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return wrong("layer %s is compressed with zstd: compress it with gzip, or not at all", d.Digest)
	}
	var in io.Reader = bytes.NewReader(content)
	if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return wrong("layer %s: %w", d.Digest, err)
		}
		in = unzipped
	}
	// Headers count as well: a tar of nothing but headers is a bomb, too.
	in = &limited{from: in, left: t.left + maxEntries*4096}
	if err := t.tar(tar.NewReader(in)); err != nil {
		if known, ok := errors.AsType[*contentError](err); ok {
			return known
		}
		return wrong("layer %s is not a tar, with gzip or without: %w", d.Digest, err)
	}
	return nil
}

func (t *tree) tar(in *tar.Reader) error {
	seen := map[string]bool{} // in this layer
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if t.entries++; t.entries > maxEntries {
			return wrong("it has more than %d files and folders", maxEntries)
		}
		if err := t.entry(h, in, seen); err != nil {
			return err
		}
	}
}

func (t *tree) entry(h *tar.Header, in io.Reader, seen map[string]bool) error {
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	switch h.Typeflag {
	case tar.TypeDir:
		if name == "" || name == "." {
			return nil
		}
		return t.folder(name, h.Name)
	case tar.TypeReg:
		return t.add(name, h.Name, h.Size, h.Mode&0o111 != 0, in, seen)
	case tar.TypeXGlobalHeader: // git archive writes one
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		return wrong("%q is a link, and no link is taken over: put the file itself there", clip(h.Name))
	}
	return wrong("%q is neither a file nor a folder", clip(h.Name))
}

// add takes a file over.
func (t *tree) add(name, written string, size int64, executable bool, in io.Reader, seen map[string]bool) error {
	if err := checkName(name, written); err != nil {
		return err
	}
	if seen[name] {
		return wrong("%q is there twice", clip(written))
	}
	seen[name] = true
	if t.dirs[name] {
		return wrong("%q is a file and a folder", clip(written))
	}
	if dir := path.Dir(name); dir != "." {
		if err := t.folder(dir, written); err != nil {
			return err
		}
	}
	if size < 0 || size > t.left {
		return wrong("it has more than %d MiB", maxUnpacked>>20)
	}
	content, err := io.ReadAll(io.LimitReader(in, size+1))
	if err != nil {
		return err
	}
	if int64(len(content)) != size {
		return wrong("%q has %d bytes, and its header says %d", clip(written), len(content), size)
	}
	t.left -= size
	t.files[name] = file{content, executable}
	return nil
}

// folder takes a folder and those above it over.
func (t *tree) folder(name, written string) error {
	if err := checkName(name, written); err != nil {
		return err
	}
	for ; name != "."; name = path.Dir(name) {
		if _, taken := t.files[name]; taken {
			return wrong("%q is a file and a folder", clip(written))
		}
		t.dirs[name] = true
	}
	return nil
}

// checkName refuses names that lead out of the folder, or that are shown otherwise than
// they are.
func checkName(name, written string) error {
	switch {
	case path.IsAbs(written) || !filepath.IsLocal(name) || path.Clean(name) != name || name == ".":
		return wrong("%q is not a path in the artifact", clip(written))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || !unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r) }):
		return wrong("%q is a name with characters that are not printed, or \\", clip(written))
	case len(name) > maxPath || strings.Count(name, "/") >= maxDepth:
		return wrong("%q is too long, or in more than %d folders", clip(written), maxDepth)
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".wh.") {
			return wrong("%q deletes a file of another layer, which is not supported: make one layer", clip(written))
		}
		if len(part) > 255 {
			return wrong("%q is too long", clip(written))
		}
	}
	return nil
}

func clip(s string) string { return fmt.Sprintf("%.120s", s) }

// limited is a reader that fails behind so many bytes: what decompresses to more is a bomb.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, wrong("it has more than %d MiB", maxUnpacked>>20)
	}
	n, err := l.from.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}
