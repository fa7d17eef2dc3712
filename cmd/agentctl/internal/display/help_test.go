package display

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const usageText = `Usage:
  agentctl get KIND [NAME...] with a line that is much longer than the terminal is wide

Flags:
  -A, --all               objects of every namespace
      --context name      name of the control plane to talk with (default $AGENTCTL_CONTEXT, else local)
  -o, --output a|b[=a]    format: a table, or objects as they are kept (default a)
`

func TestHelpHangsWhatFlagsDo(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, usageText},
		{40, usageText},
		{60, `Usage:
  agentctl get KIND [NAME...] with a line that is much longer than the terminal is wide

Flags:
  -A, --all               objects of every namespace
      --context name      name of the control plane to talk
                          with (default $AGENTCTL_CONTEXT,
                          else local)
  -o, --output a|b[=a]    format: a table, or objects as
                          they are kept (default a)
`},
	} {
		var out bytes.Buffer
		s := &Screen{w: &out, columns: func() int { return c.width }}
		if err := Help(s, "About it.\n", usageText); err != nil {
			t.Fatal(err)
		}
		got, _ := strings.CutPrefix(out.String(), "About it.\n\n")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("at %d columns (-want +got):\n%s", c.width, diff)
		}
	}
}
