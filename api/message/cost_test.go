package message

import (
	"encoding/json"
	"math"
	"testing"
)

func TestCostIsAnExactDecimal(t *testing.T) {
	for cost, want := range map[Cost]string{
		0:                       "0.00",
		1:                       "0.000000000001",
		104_000_000:             "0.000104",
		10_000_000_000:          "0.01",
		2_000_000_000_000:       "2.00",
		1_500_000_000_000:       "1.50",
		-104_000_000:            "-0.000104",
		math.MaxInt64:           "9223372.036854775807",
		math.MinInt64:           "-9223372.036854775808",
		123_456_789_012_345_678: "123456.789012345678",
	} {
		if got := cost.String(); got != want {
			t.Errorf("%d is %s, want %s", int64(cost), got, want)
		}
		b, err := json.Marshal(&cost)
		if err != nil || string(b) != `"`+want+`"` {
			t.Errorf("%d became %s, %v", int64(cost), b, err)
		}
		var back Cost
		if err := json.Unmarshal(b, &back); err != nil || back != cost {
			t.Errorf("%s came back as %d, %v", b, int64(back), err)
		}
	}
}

func TestCostIsRead(t *testing.T) {
	for text, want := range map[string]Cost{
		"1": 1_000_000_000_000, "0.1": 100_000_000_000, "-0": 0, "-0.5": -500_000_000_000, "007.10": 7_100_000_000_000,
	} {
		var c Cost
		if err := c.UnmarshalText([]byte(text)); err != nil || c != want {
			t.Errorf("%s is %d, %v, want %d", text, int64(c), err, int64(want))
		}
	}
}

func TestCostRefusesWhatIsNoAmount(t *testing.T) {
	for _, text := range []string{
		"", "-", ".", "1.", ".5", "-.5", "+1", "--1", "1e3", "1,5", "1.2.3", "0x1", " 1", "1 ", "$1", "NaN", "Inf", "١", "1.0000000000001",
		"9223372.036854775808", "-9223372.036854775809", "9223373", "99999999999999999999999999", "18446744.073709551617",
	} {
		c := Cost(7)
		if err := c.UnmarshalText([]byte(text)); err == nil || c != 7 {
			t.Errorf("%q was read as %d, %v", text, int64(c), err)
		}
	}
	for _, text := range []string{`1.5`, `true`, `{}`, `["1"]`} {
		var c Cost
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s was read as %d: money is a text", text, int64(c))
		}
	}
}

func TestCostAdds(t *testing.T) {
	for _, c := range []struct{ a, b, want Cost }{
		{1, 2, 3},
		{-1, 2, 1},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MinInt64, -1, math.MinInt64},
		{math.MinInt64, math.MinInt64, math.MinInt64},
		{math.MaxInt64, math.MinInt64, -1},
	} {
		if got := c.a.Add(c.b); got != c.want {
			t.Errorf("%s and %s are %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

// FuzzCost: what is read for an amount is written as the same amount.
func FuzzCost(f *testing.F) {
	for _, s := range []string{"0.000104", "-1", "9223372.036854775807", "1.", "1e3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var c, back Cost
		if c.UnmarshalText([]byte(s)) != nil {
			return
		}
		if err := back.UnmarshalText([]byte(c.String())); err != nil || back != c {
			t.Errorf("%q is %s and then %s, %v", s, c, back, err)
		}
	})
}
