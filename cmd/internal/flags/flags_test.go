package flags

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestExplainSaysWhatIsExpected(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no duration":       {[]string{"--timeout", "soon"}, `--timeout "soon": a number with its unit is expected, for example 30s, 5m or 1h30m`},
		"no unit":           {[]string{"--timeout=3"}, `--timeout "3": a number with its unit is expected, for example 30s, 5m or 1h30m`},
		"no number":         {[]string{"--workers", "x"}, `--workers "x": a whole number is expected`},
		"a fraction":        {[]string{"--from", "1.5"}, `--from "1.5": a whole number is expected`},
		"too large":         {[]string{"-w", "99999999999999999999"}, `--workers "99999999999999999999": the number is out of range`},
		"no score":          {[]string{"--score", "all"}, `--score "all": a number is expected`},
		"neither yes or no": {[]string{"--wait=perhaps"}, `--wait "perhaps": true or false is expected`},
		"of our own":        {[]string{"--own", "x"}, `--own "x": it names no file`},
		"nothing behind":    {[]string{"--workers"}, `--workers needs a value: what number of runs goes on`},
		"nothing behind -w": {[]string{"-w"}, `--workers needs a value: what number of runs goes on`},
		"misspelt":          {[]string{"--timout", "3s"}, `unknown flag: --timout; did you mean --timeout?`},
		"nothing is near":   {[]string{"--frobnicate"}, `unknown flag: --frobnicate`},
		"no such letter":    {[]string{"-wx"}, `--workers "x": a whole number is expected`},
		"no letter at all":  {[]string{"-xw"}, `unknown flag: "x" of -xw`},
		"no such flag -x":   {[]string{"-x"}, `unknown flag: -x`},
		"no syntax":         {[]string{"--=x"}, `bad flag syntax: --=x`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := &cobra.Command{Use: "it"}
			cmd.Flags().Duration("timeout", time.Second, "how long")
			cmd.Flags().IntP("workers", "w", 1, "what `number` of runs goes on")
			cmd.Flags().Int64("from", 1, "")
			cmd.Flags().Float64("score", 1, "")
			cmd.Flags().Bool("wait", true, "")
			cmd.Flags().Var(own{}, "own", "")
			err := cmd.ParseFlags(c.args)
			if err == nil {
				t.Fatal("it is taken")
			}
			if got := Explain(cmd, err).Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// own is a flag that takes nothing.
type own struct{}

func (own) String() string   { return "" }
func (own) Set(string) error { return errors.New("it names no file") }
func (own) Type() string     { return "file" }
