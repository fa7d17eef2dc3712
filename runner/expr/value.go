package expr

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// native turns a value of CEL into one of Go.
func native(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return int64(v), nil
	case types.Double:
		return float64(v), nil
	case types.String:
		return string(v), nil
	case types.Bytes:
		return []byte(v), nil
	case types.Null:
		return nil, nil
	case types.Timestamp:
		return v.Time, nil
	case types.Duration:
		return v.Duration, nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return native(v.GetValue())
	case *types.Unknown:
		return nil, fmt.Errorf("the value depends on something unknown")
	case traits.Mapper:
		return nativeMap(v)
	case traits.Lister:
		return nativeList(v)
	}
	return nil, fmt.Errorf("a value of type %s cannot be returned", v.Type().TypeName())
}

func nativeMap(m traits.Mapper) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		v, err := native(m.Get(k))
		if err != nil {
			return nil, err
		}
		out[fmt.Sprint(k.Value())] = v
	}
	return out, nil
}

func nativeList(l traits.Lister) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		v, err := native(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Lazy is an object whose fields are computed when they are first read, each at most once.
// It must be used by one goroutine.
type Lazy struct {
	compute func(name string) (any, error)
	done    map[string]ref.Val
}

// NewLazy makes an object from a function that computes a field.
func NewLazy(compute func(name string) (any, error)) *Lazy {
	return &Lazy{compute: compute, done: map[string]ref.Val{}}
}

// Find computes a field. A failure is a value too: CEL carries it as an error.
func (l *Lazy) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	if v, ok := l.done[string(name)]; ok {
		return v, true
	}
	raw, err := l.compute(string(name))
	v, isVal := raw.(ref.Val)
	switch {
	case err != nil:
		v = types.WrapErr(fmt.Errorf("%s: %w", string(name), err))
	case !isVal:
		v = types.DefaultTypeAdapter.NativeToValue(raw)
	}
	l.done[string(name)] = v
	return v, true
}

// Get returns a field.
func (l *Lazy) Get(key ref.Val) ref.Val {
	if v, ok := l.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key)
}

// Contains reports whether a field is present.
func (l *Lazy) Contains(key ref.Val) ref.Val {
	_, ok := l.Find(key)
	return types.Bool(ok)
}

// Size is unknown without computing everything.
func (l *Lazy) Size() ref.Val { return types.NewErr("variables have no size") }

// Iterator is empty: there is no order in which to compute.
func (l *Lazy) Iterator() traits.Iterator {
	return types.NewDynamicMap(types.DefaultTypeAdapter, map[string]any{}).Iterator()
}

// ConvertToNative refuses.
func (l *Lazy) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("variables cannot be converted to %v", t)
}

// ConvertToType refuses everything but itself.
func (l *Lazy) ConvertToType(t ref.Type) ref.Val {
	if t == types.MapType {
		return l
	}
	return types.NewErr("variables cannot be converted to %s", t.TypeName())
}

// Equal compares by identity.
func (l *Lazy) Equal(other ref.Val) ref.Val {
	o, ok := other.(*Lazy)
	return types.Bool(ok && o == l)
}

// Type is map.
func (l *Lazy) Type() ref.Type { return types.MapType }

// Value returns the object itself.
func (l *Lazy) Value() any { return l }

var _ traits.Mapper = (*Lazy)(nil)
