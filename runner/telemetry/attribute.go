package telemetry

import (
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

type attribute = *commonpb.KeyValue

func text(key, value string) attribute {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func whole(key string, value int64) attribute {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}
}

func number(key string, value float64) attribute {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: value}}}
}

func boolean(key string, value bool) attribute {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: value}}}
}

func list(key string, values ...string) attribute {
	all := &commonpb.ArrayValue{}
	for _, v := range values {
		all.Values = append(all.Values, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}})
	}
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: all}}}
}

// filled leaves out those without a text.
func filled(all ...attribute) []attribute {
	kept := all[:0]
	for _, a := range all {
		if s, ok := a.GetValue().GetValue().(*commonpb.AnyValue_StringValue); !ok || s.StringValue != "" {
			kept = append(kept, a)
		}
	}
	return kept
}
