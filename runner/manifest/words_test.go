package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWordsFindsWhatYAMLReadsAsABoolean(t *testing.T) {
	for text, want := range map[string]bool{
		"a: no": true, "no: 1": true, "- on\n": true, "{a: yes}": true, "[y,n]": true, "a: Off # x": true, "a: NO\r\n": true,
		"": false, "a: none": false, "a: 'no'": false, "a: true": false, "yesterday: 1": false, "a: x-no": true, "oN: 1": false,
	} {
		if got := words([]byte(text)); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

// BenchmarkLoadScript loads a script of a thousand steps, each with free-form
// arguments: the time must grow with the steps, not with their square.
func BenchmarkLoadScript(b *testing.B) {
	for _, steps := range []int{100, 1000} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			text := "apiVersion: agentctl.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: scripted\n  scripted:\n    steps:\n" +
				strings.Repeat("    - {say: a, calls: [{tool: bash, args: {command: ls -l, description: list}}]}\n", steps)
			for b.Loop() {
				if _, found := Load(b.Context(), []string{"-"}, strings.NewReader(text)); len(found) > 0 {
					b.Fatal(messages(found))
				}
			}
		})
	}
}

// TestADurationThatIsTooLongIsTheFieldsMistake: it has the form of a duration,
// and no number of nanoseconds holds it.
func TestADurationThatIsTooLongIsTheFieldsMistake(t *testing.T) {
	_, found := load(t, agentText+"  limits: {timeout: 99999999h}\n")
	want := []string{`error 7:21 spec.limits.timeout: "99999999h" is too long: the longest duration is about 290 years`}
	if diff := cmp.Diff(want, messages(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
