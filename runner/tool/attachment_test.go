package tool

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"agentctl.dev/agentctl/api/message"
	"agentctl.dev/agentctl/plugins/host"
)

func pngOf(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hugePNG declares many pixels in a few bytes.
func hugePNG() []byte {
	chunk := func(kind string, data []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		b = append(append(b, kind...), data...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	head := binary.BigEndian.AppendUint32(nil, 60000)
	head = append(binary.BigEndian.AppendUint32(head, 60000), 8, 0, 0, 0, 0)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 1000))
	_ = z.Close()
	return append(append(append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head)...), chunk("IDAT", packed.Bytes())...), chunk("IEND", nil)...)
}

const webp = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"

func TestMediaIsKnownByItsContent(t *testing.T) {
	picture := pngOf(t, 3, 2)
	var photo, animation bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 3, 2)), nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&animation, image.NewGray(image.Rect(0, 0, 3, 2)), nil); err != nil {
		t.Fatal(err)
	}
	web, err := base64.StdEncoding.DecodeString(webp)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(picture)
	damaged[len(damaged)-20] ^= 1
	for name, c := range map[string]struct {
		reason      string
		content     []byte
		want, wrong string
	}{
		"png":           {"an image", picture, "image/png", ""},
		"jpeg":          {"an image", photo.Bytes(), "image/jpeg", ""},
		"jpeg and more": {"cameras write more behind it", append(bytes.Clone(photo.Bytes()), "thumbnail"...), "image/jpeg", ""},
		"gif":           {"an image", animation.Bytes(), "image/gif", ""},
		"webp":          {"an image", web, "image/webp", ""},
		"pdf":           {"a document", []byte("%PDF-1.7\n...\n%%EOF\n"), pdf, ""},
		"signature":     {"a provider would refuse the request", picture[:8], "", "header"},
		"script":        {"text with the signature of an image", []byte("\x89PNG\r\n\x1a\nrm -rf /"), "", "header"},
		"cut png":       {"an end is missing", picture[:len(picture)-4], "", "no end"},
		"damaged png":   {"a byte is wrong", damaged, "", "checksum"},
		"cut jpeg":      {"an end is missing", photo.Bytes()[:len(photo.Bytes())-2], "", "no end"},
		"cut gif":       {"an end is missing", animation.Bytes()[:len(animation.Bytes())-3], "", "no end"},
		"cut webp":      {"an end is missing", web[:len(web)-1], "", "no end"},
		"cut pdf":       {"an end is missing", []byte("%PDF-1.7\n..."), "", "no end"},
		"bomb":          {"60000 x 60000 pixels in 100 bytes", hugePNG(), "", "60000 x 60000 pixels"},
		"no pixels":     {"a header alone", append(bytes.Clone(picture[:33]), picture[len(picture)-12:]...), "", "no pixels"},
		"text":          {"no image at all", []byte("hello"), "", "it is text/plain; images"},
		"svg":           {"no provider takes it", []byte("<svg xmlns='x'/>"), "", "images"},
		"bmp":           {"no provider takes it", []byte("BM\x00\x00"), "", "it is image/bmp"},
		"empty":         {"nothing", nil, "", "images"},
	} {
		got, err := MediaType(c.content)
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s (%s): %q, %v", name, c.reason, got, err)
		}
	}
}

func FuzzMediaType(f *testing.F) {
	web, _ := base64.StdEncoding.DecodeString(webp)
	for _, seed := range [][]byte{hugePNG(), web, []byte("%PDF-%%EOF"), []byte("\xff\xd8\xff"), []byte("GIF89a;")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if mime, err := MediaType(content); (mime == "") != (err != nil) {
			t.Errorf("%q, %v", mime, err)
		}
	})
}

func TestAttachmentsAreBlobsOfTheRun(t *testing.T) {
	picture := pngOf(t, 1, 1)
	var attached []Attachment
	r := registry(t, func(context.Context, host.CallRequest, func(string)) (Reply, error) {
		return Reply{Output: "done", Attachments: attached}, nil
	}, shipped(t, "bash"))
	run := func(a ...Attachment) *message.ToolResult {
		attached = a
		result, err := r.Run(t.Context(), message.ToolCall{ID: "c", Tool: "bash", Args: []byte(`{"command":"x"}`)}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	got := run(Attachment{Name: "../../etc/shot\x1b.png", Type: "text/plain", Content: picture}, Attachment{Content: []byte("%PDF-1.7 %%EOF")})
	if len(got.Attachments) != 2 || got.Text != "done" {
		t.Fatalf("%+v", got)
	}
	if a := got.Attachments[0]; a.Mime != "image/png" || a.Filename != "shot<U+001B>.png" || a.URL != "blob:sha256:1" || a.Size != int64(len(picture)) {
		t.Errorf("the type is that of the content, the name has no folder: %+v", a)
	}
	if a := got.Attachments[1]; a.Mime != pdf || a.Filename != "file" {
		t.Errorf("a file without a name: %+v", a)
	}
	large := append(bytes.Clone(picture[:len(picture)-12]), make([]byte, maxAttachment)...)
	for name, c := range map[string]struct {
		files []Attachment
		kept  int
		says  string
	}{
		"an image that is none": {[]Attachment{{Name: "a.png", Content: []byte("#!/bin/sh")}}, 0, "[a.png was not attached: it is text/plain"},
		"too large":             {[]Attachment{{Name: "a.png", Content: large}}, 0, "at most 10485760 can be attached"},
		"too many":              {append(make([]Attachment, 0, 9), repeat(Attachment{Name: "a.png", Content: picture}, 9)...), 8, "at most 8 files, and this one has 9"},
		"a secret":              {[]Attachment{{Name: "a.pdf", Content: []byte("%PDF-1.7 hunter2 %%EOF")}}, 0, "it holds a secret of the run"},
		"a secret name":         {[]Attachment{{Name: "hunter2.png", Content: []byte("x")}}, 0, "[***.png was not attached"},
	} {
		got := run(c.files...)
		if len(got.Attachments) != c.kept || !strings.Contains(got.Text, c.says) || strings.Contains(got.Text, "hunter2") {
			t.Errorf("%s: %d attached, %q", name, len(got.Attachments), got.Text)
		}
	}
}

func repeat(a Attachment, n int) (all []Attachment) {
	for range n {
		all = append(all, a)
	}
	return all
}

func TestAnAttachmentCanBeReadAgain(t *testing.T) {
	r := registry(t, nil, shipped(t, "read"))
	r.Blobs = memory{"sha256:1": pngOf(t, 1, 1)}
	got, err := r.Run(t.Context(), message.ToolCall{ID: "c", Tool: "read", Args: []byte(`{"path":"blob:sha256:1"}`)}, func(string) {})
	if err != nil || len(got.Attachments) != 1 || got.Attachments[0].URL != "blob:sha256:1" || strings.Contains(got.Text, "PNG\r") {
		t.Errorf("%+v, %v", got, err)
	}
}
