package expr

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Counts is the type of a map from names to numbers in which every name has a
// number: one that is not in the map has 0. Its values are made by CountsOf.
func Counts() Type {
	t := Map(Int)
	t.total = true
	return t
}

// CountsOf makes a value of type Counts. The map must not change afterwards.
func CountsOf(n map[string]int) any {
	return counts{types.DefaultTypeAdapter.NativeToValue(n).(traits.Mapper)}
}

type counts struct{ traits.Mapper }

func (c counts) Find(key ref.Val) (ref.Val, bool) {
	if v, ok := c.Mapper.Find(key); ok {
		return v, true
	}
	_, ok := key.(types.String)
	return types.IntZero, ok
}

func (c counts) Get(key ref.Val) ref.Val {
	if v, ok := c.Find(key); ok {
		return v
	}
	return c.Mapper.Get(key)
}
