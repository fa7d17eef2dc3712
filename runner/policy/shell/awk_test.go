package shell

import (
	"strings"
	"testing"
)

func TestAwkPrograms(t *testing.T) {
	for script, want := range map[string]string{ // what they read | write
		`awk -F'|' '{print $1 "|" $2}' f`:                                  "f|",
		`awk '/a|b/ && $3 > 5 || $2 ~ /x/ {n += $1/2} END {print n/NR}' f`: "f|",
		`awk '{print $1 > "out"}' f`:                                       "f|out",
		`awk 'BEGIN{printf "%s", "x" >> "d/out"; print (1 > 2)}'`:          "|d/out",
		`awk '{print "e" > "/dev/stderr"}' f`:                              "f|",
		`awk 'BEGIN{while ((getline line < "list") > 0) n++}'`:             "list|",
		`awk '/x/{getline; print}' f`:                                      "f|",
		`awk '{print $1,` + "\n" + `$2 > "out"}' f`:                        "f|out",
		`awk '{print $1 > $2}' f`:                                          "?",
		"awk '{print 1 &&\n2 > \"out\"}' f":                                "f|out",
		`awk '{print > "a" $1}' f`:                                         "?",
		`awk '{print $1 | "sort"}' f`:                                      "?",
		`awk 'BEGIN{"id" | getline x}'`:                                    "?",
		`awk 'BEGIN{system("id")}'`:                                        "?",
		`awk '{x = $1 / 2; system("id") / 3}' f`:                           "?",
		`awk 'BEGIN{if (1) /"/; system("id") #"` + "\n" + `}'`:             "?",
		`awk 'BEGIN{x++ / 2; system("id"); y = 1 / 2}'`:                    "?",
		`awk '/[/]/{system("id")}/x/' f`:                                   "?",
		`awk '{getline x < $1}' f`:                                         "?",
		`awk 'BEGIN{getline x < "a" "b"}'`:                                 "?",
		`awk 'BEGIN{print "x" > "/inet/tcp/0/h/1"}'`:                       "?",
		`awk 'BEGIN{ARGV[1]="/etc/x"; ARGC=2}'`:                            "?",
		`awk '@load "x"'`:                                                  "?",
		`awk "{print $x}" f`:                                               "?",
		`awk 'BEGIN{print 1 >= 2}'`:                                        "?",
	} {
		f := Parse(script, "")
		got := strings.Join(sorted(f.Reads), " ") + "|" + strings.Join(sorted(f.Writes), " ")
		if f.Dynamic || f.Opaque {
			got = "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q: %v", script, got, want, f.Reasons)
		}
	}
}
