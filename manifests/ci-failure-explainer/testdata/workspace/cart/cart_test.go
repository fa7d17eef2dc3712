package cart

import "testing"

func TestTotal(t *testing.T) {
	for _, c := range []struct {
		name     string
		items    []Item
		discount int64
		want     int64
	}{
		{"nothing", nil, 10, 0},
		{"no discount", []Item{{"tea", 450, 2}}, 0, 900},
		{"ten percent", []Item{{"cup", 1295, 1}}, 10, 1166},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Total(c.items, c.discount); got != c.want {
				t.Errorf("Total = %d, want %d", got, c.want)
			}
		})
	}
}
