package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentctl.dev/agentctl/runner/storytest"
)

// TestPicturesShowWhatTheProgramPrints runs what the pictures of the documents show on a
// terminal, and compares them with what the terminal shows. With -update it writes them.
func TestPicturesShowWhatTheProgramPrints(t *testing.T) {
	needSandbox(t)
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for file, args := range map[string][]string{
		"hostile.svg":   {"run", "-f", "manifests/hostile"},
		"demo-lied.svg": {"demo", "lied"},
		"demo-fork.svg": {"demo", "fork"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil { // what the hostile tool looks for
				t.Fatal(err)
			}
			temp, err := os.MkdirTemp("/tmp", "d") //nolint:usetesting // a path that fits into a line
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(temp) })
			cmd := exec.CommandContext(t.Context(), "agentctl", args...)
			cmd.Dir = repository
			cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+temp, "AGENTCTL_STATE="+filepath.Join(home, ".state"), "AGENTCTL_LIBEXEC="+buildTools(t),
				"AGENTCTL_OUTER_ISOLATION=", "NO_COLOR=", "TERM=xterm-256color")
			shown := pictured(onTerminal(t, cmd), home, repository)
			checkPicture(t, filepath.Join("../../docs", file), picture("agentctl "+strings.Join(args, " "), screenLines(shown)))
		})
	}
}

// pictured replaces what differs from run to run by fixed values.
func pictured(shown, home, repository string) string {
	shown = strings.NewReplacer(home+"/.state", "~/.local/state/agentctl", repository, "~/agentctl").Replace(shown)
	for _, r := range []struct{ pattern, by string }{
		{`(runs?)/([a-z]+)-01[0-9a-z]{24}`, "$1/$2-01m82meagbstp1q71vv8jj3bn4"},
		{`[^ (\n]*/agentctl-demo-[0-9]+`, "/tmp/demo"},
		{` +[0-9.]+(µs|ms|s)( )`, "     20ms$2"},
		{`· [0-9.]+(µs|ms|s)(\r?\n)`, "· 280ms$2"},
		{`, [0-9.]+ KiB`, ", 10 KiB"},
		{`(?m)^[^\n]*warning:[^\n]*\n`, ""}, // hosts differ in what they lack
	} {
		shown = regexp.MustCompile(r.pattern).ReplaceAllString(shown, r.by)
	}
	return shown
}

// checkPicture compares a picture, or writes it.
func checkPicture(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a picture for everybody
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the program prints; write it with -update (-picture +program):\n%s", file, diff)
	}
}

// onTerminal runs a command on a terminal of 100 columns and returns what was
// written to it.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, slave, err := storytest.NewTerminal(100)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = master.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	shown := storytest.TypeInto(master)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	return shown
}

// cell is a character of the terminal with the class of its colour.
type cell struct {
	char  rune
	class string
}

// screenLines are the lines that a terminal shows after this output. It knows the
// sequences that agentctl uses: colours, return, and erase to the end of the line.
func screenLines(output string) [][]cell {
	classes := map[string]string{"0": "", "1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c"}
	lines, class, column := [][]cell{nil}, "", 0
	for i := 0; i < len(output); {
		line := &lines[len(lines)-1]
		if code, final, size := control(output[i:]); size > 0 {
			switch final {
			case 'm':
				class = classes[code]
			case 'K':
				*line = (*line)[:min(column, len(*line))]
			}
			i += size
			continue
		}
		r := []rune(output[i:min(i+4, len(output))])[0]
		i += len(string(r))
		switch r {
		case '\n':
			lines, column = append(lines, nil), 0
		case '\r':
			column = 0
		default:
			*line = append((*line)[:min(column, len(*line))], cell{r, class})
			column++
		}
	}
	return lines[:len(lines)-1]
}

// control reads a control sequence at the start of a text; size 0 is no sequence.
func control(text string) (code string, final byte, size int) {
	if !strings.HasPrefix(text, "\x1b[") {
		return "", 0, 0
	}
	end := strings.IndexAny(text, "mK")
	if end < 0 {
		return "", 0, 0
	}
	return text[2:end], text[end], end + 1
}

// picture draws a terminal as SVG.
func picture(command string, lines [][]cell) string {
	const width, height, margin = 8.43, 20, 16
	prompt := []cell{{'$', "d"}, {' ', ""}}
	for _, r := range command {
		prompt = append(prompt, cell{r, "b"})
	}
	lines = append([][]cell{prompt}, lines...)
	columns := 0
	for _, l := range lines {
		columns = max(columns, len(l))
	}
	w, h := int(float64(columns)*width)+2*margin, len(lines)*height+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", w, h, w, h)
	b.WriteString("<!-- Written by go test ./cmd/agentctl -run Picture -update. -->\n")
	b.WriteString("<style>text { font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #d0d7de; white-space: pre }\n" +
		".b { font-weight: bold } .d { fill: #8b949e } .r { fill: #ff7b72; font-weight: bold } .g { fill: #7ee787 } .y { fill: #e3b341 } .c { fill: #79c0ff }</style>\n")
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#0d1117\"/>\n", w, h)
	for i, l := range lines {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" xml:space=\"preserve\">", margin, margin+i*height+15)
		for start := 0; start < len(l); {
			end := start
			var span strings.Builder
			for ; end < len(l) && l[end].class == l[start].class; end++ {
				span.WriteRune(l[end].char)
			}
			text := html.EscapeString(span.String())
			if l[start].class != "" {
				text = fmt.Sprintf("<tspan class=\"%s\">%s</tspan>", l[start].class, text)
			}
			b.WriteString(text)
			start = end
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}
