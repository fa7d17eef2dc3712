package expr

import "testing"

func TestConditionsThatSpreadFromOneItemToAList(t *testing.T) {
	item := NewObject("Item", Field{Name: "name", Type: String}, Field{Name: "on", Type: Bool})
	env, err := NewEnv(Var{Name: "items", Type: List(item)}, Var{Name: "n", Type: Int}, Var{Name: "others", Type: List(item)})
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]bool{
		"items.exists(i, i.on)":                                  true,
		"n > 1 && items.exists(i, i.name == 'x' && !i.on)":       true,
		"items.exists(i, i.on) || items.exists(j, j.name != '')": true,
		"n > 1":                                                 true,
		"!items.exists(i, i.on)":                                false,
		"items.all(i, i.on)":                                    false,
		"items.exists_one(i, i.on)":                             false,
		"items.size() == 1 && items[0].on":                      false,
		"items.exists(i, items.size() == 1)":                    false,
		"items.filter(i, i.on).size() > 0":                      false,
		"items.exists(i, i.on) == false":                        false,
		"n > 1 ? items.exists(i, i.on) : items.all(i, i.on)":    false,
		"items.exists(items, items.on)":                         false,
		"items.filter(i, i.on).exists(i, i.name == 'x')":        false,
		"items.map(i, i.name).exists(x, x == 'x')":              false,
		"items.exists(i, i.on) && !(items.exists(i, !i.on))":    false,
		"[items.exists(i, i.on)].exists(x, x)":                  false,
		"others.exists(o, o.on) && items.exists(i, i.on)":       true,
		"items.exists(i, i.name in ['a']) && others.size() > 1": true,
	} {
		p, err := env.Bool(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if got := p.Spreads("items"); got != want {
			t.Errorf("%s: spreads %v, want %v", src, got, want)
		}
	}
}

func TestConditionsThatSpreadFromOneItemOfAField(t *testing.T) {
	item := NewObject("Item", Field{Name: "name", Type: String}, Field{Name: "parts", Type: List(String)})
	env, err := NewEnv(Var{Name: "cmd", Type: NewObject("Cmd", Field{Name: "commands", Type: List(item)}, Field{Name: "network", Type: Bool})})
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]bool{
		"cmd.commands.exists(c, c.name == 'x')":                              true,
		"cmd.network || cmd.commands.exists(c, c.parts.exists(p, p == 'x'))": true,
		"cmd.network":                            true,
		"!cmd.commands.exists(c, c.name == 'x')": false,
		"cmd.commands.size() > 0":                false,
		"cmd.commands.exists(c, c.name == 'x' && cmd.commands.size() == 1)":           false,
		"cmd.commands.exists(c, c.name == 'x') && cmd.commands.all(c, c.name == 'x')": false,
		"cmd == cmd": false,
	} {
		p, err := env.Bool(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if got := p.Spreads("cmd", "commands"); got != want {
			t.Errorf("%s: spreads %v, want %v", src, got, want)
		}
	}
}
