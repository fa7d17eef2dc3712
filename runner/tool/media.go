package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
)

// maxSide is the most pixels of a side that every provider takes.
const maxSide = 8000

// pdf is the media type of documents.
const pdf = "application/pdf"

// whole are the media that providers take beside a text, and what finds out whether a
// file of that type is one from its beginning to its end. A provider answers a request
// with an image that it cannot read with an error, which would end the run.
var whole = map[string]func([]byte) error{
	"image/png": wholePNG, "image/jpeg": wholeJPEG, "image/gif": wholeGIF, "image/webp": wholeWebP, pdf: wholePDF,
}

// MediaType returns the type of an image or a document by its content. The error says
// what the content is instead, or what is wrong with it.
func MediaType(content []byte) (string, error) {
	mime, _, _ := strings.Cut(http.DetectContentType(content), ";")
	check, known := whole[mime]
	if !known {
		return "", fmt.Errorf("it is %s; images (PNG, JPEG, GIF, WebP) and PDF can be attached", mime)
	}
	if err := check(content); err != nil {
		return "", fmt.Errorf("it begins like %s, but %w", mime, err)
	}
	return mime, nil
}

var errTruncated = errors.New("it has no end: the file is cut, or is something else")

// sides checks the size that the header of an image declares. No pixel is decoded.
func sides(content []byte, header func(io.Reader) (image.Config, error)) error {
	c, err := header(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("its header cannot be read: %w", err)
	}
	return side(c.Width, c.Height)
}

func side(width, height int) error {
	if width < 1 || height < 1 || width > maxSide || height > maxSide {
		return fmt.Errorf("it has %d x %d pixels; a side has 1 to %d", width, height, maxSide)
	}
	return nil
}

// wholePNG reads the chunks up to the last one, and their checksums.
func wholePNG(content []byte) error {
	if err := sides(content, png.DecodeConfig); err != nil {
		return err
	}
	const signature, frame = 8, 12 // length, type and checksum
	pixels := false
	for rest := content[signature:]; len(rest) >= frame; {
		n := uint64(binary.BigEndian.Uint32(rest))
		if n > uint64(len(rest)-frame) {
			return errTruncated
		}
		kind, sum := string(rest[4:8]), binary.BigEndian.Uint32(rest[8+n:])
		if crc32.ChecksumIEEE(rest[4:8+n]) != sum {
			return fmt.Errorf("the checksum of its part %q is wrong", kind)
		}
		pixels = pixels || kind == "IDAT"
		if kind == "IEND" {
			if !pixels {
				return errors.New("it has no pixels")
			}
			return nil
		}
		rest = rest[frame+n:]
	}
	return errTruncated
}

// wholeJPEG looks for the mark of the end, behind which cameras may write more.
func wholeJPEG(content []byte) error {
	if err := sides(content, jpeg.DecodeConfig); err != nil {
		return err
	}
	if bytes.LastIndex(content, []byte{0xff, 0xd9}) < 0 || !bytes.Contains(content, []byte{0xff, 0xda}) {
		return errTruncated
	}
	return nil
}

func wholeGIF(content []byte) error {
	if err := sides(content, gif.DecodeConfig); err != nil {
		return err
	}
	if end := bytes.TrimRight(content, "\x00"); end[len(end)-1] != ';' {
		return errTruncated
	}
	return nil
}

// wholeWebP reads the container, and the size of the image from its first part.
func wholeWebP(content []byte) error {
	const header = 30
	if len(content) < header || uint64(binary.LittleEndian.Uint32(content[4:]))+8 > uint64(len(content)) {
		return errTruncated
	}
	little := func(at, bytes, bits int) int {
		var n int
		for i := range bytes {
			n |= int(content[at+i]) << (8 * i)
		}
		return n & (1<<bits - 1)
	}
	switch string(content[12:16]) {
	case "VP8 ":
		return side(little(26, 2, 14), little(28, 2, 14))
	case "VP8L":
		both := little(21, 4, 32)
		return side(both&0x3fff+1, both>>14&0x3fff+1)
	case "VP8X":
		return side(little(24, 3, 24)+1, little(27, 3, 24)+1)
	}
	return errors.New("its container holds no image")
}

// trailer is how far from the end of a PDF readers look for its mark.
const trailer = 2048

func wholePDF(content []byte) error {
	if !bytes.Contains(content[max(0, len(content)-trailer):], []byte("%%EOF")) {
		return errTruncated
	}
	return nil
}
