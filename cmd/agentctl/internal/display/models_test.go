package display

import (
	"strings"
	"testing"
)

func TestModelListShowsWhatIsNotKnownAsADash(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	list := ModelList{
		Providers: []ListedProvider{{"p", "https://p.example", "P_KEY"}},
		Models: []ListedModel{
			{Provider: "p", Model: "bare", AsOf: "2026-01-01"},
			{
				Provider: "p", Model: "whole", Context: number(1_048_576), MaxInput: number(999_999), MaxOutput: number(512), Input: "1.00", CacheRead: "0.10",
				CacheWrite: "1.25", Output: "2.00", LongAbove: 200_000, LongInput: "2.00", LongOutput: "3.00", Capabilities: allCapabilities, AsOf: "2026-01-02", Source: "https://p.example/prices",
			},
		},
	}
	for format, c := range map[string]struct{ lines, not []string }{
		"text": {
			[]string{"p         bare   -        -       -      -      -    2026-01-01", "p         whole  1.04M    512     1.00+  2.00+  all  2026-01-02", "p: https://p.example, key in P_KEY", "+ dearer for long requests, see -o wide"},
			[]string{"0.10", "https://p.example/prices"},
		},
		FormatWide: {
			[]string{"1.04M    999k   512", "0.10", "1.25", "2.00 in, 3.00 out above 200k", "tools images pdf reasoning structuredOutput", "https://p.example/prices"},
			[]string{"see -o wide", "+ dearer"},
		},
	} {
		var out strings.Builder
		list.Format = format
		if err := list.Write(&Screen{w: &out}); err != nil {
			t.Fatal(err)
		}
		for _, line := range c.lines {
			if !strings.Contains(out.String(), line) {
				t.Errorf("%s: nothing shows %q:\n%s", format, line, out.String())
			}
		}
		for _, no := range c.not {
			if strings.Contains(out.String(), no) {
				t.Errorf("%s: %q is shown:\n%s", format, no, out.String())
			}
		}
	}
}

func TestAbilities(t *testing.T) {
	for want, has := range map[string][]string{
		"all": allCapabilities, "no reasoning": {"tools", "images", "pdf", "structuredOutput"}, "no pdf, reasoning": {"tools", "images", "structuredOutput"},
		"tools, images": {"tools", "images"}, "-": nil,
	} {
		if got := abilities(has); got != want {
			t.Errorf("%q is shown as %q, want %q", has, got, want)
		}
	}
}
