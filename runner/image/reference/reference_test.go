package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"agentctl.dev/agentctl/runner/image/reference"
)

func TestAReferenceHasADigestAndARegistry(t *testing.T) {
	sum := "@sha256:" + strings.Repeat("ab", 32)
	for text, want := range map[string]string{
		"docker.io/library/busybox" + sum:      "docker.io/library/busybox" + sum,
		"docker.io/library/busybox:1.36" + sum: "docker.io/library/busybox" + sum,
		"localhost:5000/x" + sum:               "localhost:5000/x" + sum,
		"localhost/x:y" + sum:                  "localhost/x" + sum,
		"[::1]:5000/x" + sum:                   "[::1]:5000/x" + sum,
		"oci:/srv/a b"[:8] + "x" + sum:         "oci:/srvx" + sum,
		"oci:/srv/../img.tar" + sum:            "oci:/img.tar" + sum,
		"oci:/srv/v@2" + sum:                   "oci:/srv/v@2" + sum,
	} {
		got, err := reference.Parse(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "busybox", "busybox:latest", "docker.io/library/busybox:latest", "busybox" + sum, "library/busybox" + sum, "docker.io/" + sum, "docker.io/UPPER" + sum,
		"docker.io/a//b" + sum, "docker.io/../b" + sum, "oci:relative" + sum, "oci:" + sum, "docker.io/x@sha256:abc", "docker.io/x@sha512:" + strings.Repeat("ab", 64),
		"docker.io/x@md5:" + strings.Repeat("a", 32), "docker.io/x y" + sum, "docker.io/x\n" + sum, "http://docker.io/x" + sum, "user@host.example/x" + sum, "host.example:80:90/x" + sum + "@",
		"docker.io/" + strings.Repeat("x", 5000) + sum,
	} {
		if got, err := reference.Parse(text); err == nil {
			t.Errorf("%.80q was taken for %s", text, got)
		} else if len(err.Error()) > 600 {
			t.Errorf("%.80q: an error of %d bytes", text, len(err.Error()))
		}
	}
}

func FuzzReference(f *testing.F) {
	sum := "@sha256:" + strings.Repeat("ab", 32)
	for _, s := range []string{"docker.io/library/busybox:1" + sum, "oci:/a/b" + sum, "localhost/x" + sum, "x", "@", "oci:@" + sum, "a.b/c@d" + sum} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := reference.Parse(text)
		if err != nil {
			return
		}
		again, err := reference.Parse(ref.String())
		if err != nil || again != ref {
			t.Errorf("%q is %s, which is %v, %v", text, ref, again, err)
		}
		if (ref.Name == "") == (ref.Layout == "") || fmt.Sprint(ref.Digest) != text[strings.LastIndexByte(text, '@')+1:] {
			t.Errorf("%q is %+v", text, ref)
		}
	})
}
