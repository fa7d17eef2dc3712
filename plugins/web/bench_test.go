package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// manual is an HTML page of at least that size, as manuals are: sections with emphasis,
// links, lists, tables and code.
func manual(size int) string {
	var b strings.Builder
	b.WriteString("<!doctype html><html><head><title>A manual</title><script>var x=1;</script><style>p{}</style></head><body><nav><ul>")
	for i := range 40 {
		fmt.Fprintf(&b, `<li><a href="/nav/%d">Menu %d</a></li>`, i, i)
	}
	b.WriteString("</ul></nav><main><article><h1>Manual</h1>")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "<h2 id=\"s%d\">Section %d</h2>\n<p class=\"para\">The quick brown fox, which is <b>number %d</b>, jumps over <a href=\"/wiki/Dog_%d\" title=\"Dog\">the lazy dog</a> "+
			"and <i>runs away</i>; nobody <code>knows(%d)</code> where it goes, but the weather is fine and the sentence is long enough to count as text.</p>\n"+
			"<ul><li>one <a href=\"https://example.org/%d\">link</a></li><li>two</li></ul>\n", i, i, i, i, i, i)
		if i%10 == 0 {
			b.WriteString("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2 &amp; 3</td></tr></table><pre><code>func main() {\n  x := 1\n}</code></pre>")
		}
	}
	b.WriteString("</article></main><footer>foot</footer></body></html>")
	return b.String()
}

func BenchmarkConvert1MB(b *testing.B) {
	page, at := manual(1<<20), &url.URL{Scheme: "https", Host: "example.com", Path: "/a"}
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		if p := convert(page, at, false); len(p.text) < 500_000 {
			b.Fatalf("%d bytes of text", len(p.text))
		}
	}
}
