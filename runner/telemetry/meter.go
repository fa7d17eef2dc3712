package telemetry

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// maxSeries bounds the combinations of attributes of one metric. What is beyond them counts
// in one without attributes.
const maxSeries = 1000

// meter adds up the metrics of this process.
type meter struct {
	begun time.Time

	mu     sync.Mutex
	series map[string]*series
}

// series is a histogram of one metric with one combination of attributes.
type series struct {
	metric     string
	attributes []attribute
	count      uint64
	sum        float64
	least      float64
	most       float64
	buckets    []uint64
}

func newMeter(begun time.Time) *meter { return &meter{begun: begun, series: map[string]*series{}} }

func bounds(metric string) []float64 {
	if metric == metricTokens {
		return boundsTokens
	}
	return boundsDuration
}

// add takes a measurement. nil takes none.
func (m *meter) add(metric string, value float64, attributes ...attribute) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := metric
	for _, a := range attributes {
		key += "\x00" + a.GetKey() + "\x00" + a.GetValue().GetStringValue()
	}
	s := m.series[key]
	if s == nil && len(m.series) >= maxSeries {
		key, attributes = metric, nil
		s = m.series[key]
	}
	if s == nil {
		s = &series{metric: metric, attributes: attributes, least: value, most: value, buckets: make([]uint64, len(bounds(metric))+1)}
		m.series[key] = s
	}
	s.count++
	s.sum += value
	s.least, s.most = min(s.least, value), max(s.most, value)
	s.buckets[sort.SearchFloat64s(bounds(metric), value)]++ // a bound belongs to the bucket below it
}

// metrics are all measurements so far.
func (m *meter) metrics(now time.Time) []*metricspb.Metric {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := map[string]*metricspb.Histogram{}
	var all []*metricspb.Metric
	for _, key := range sortedKeys(m.series) {
		s := m.series[key]
		h := of[s.metric]
		if h == nil {
			h = &metricspb.Histogram{AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE}
			of[s.metric] = h
			unit := unitDuration
			if s.metric == metricTokens {
				unit = unitTokens
			}
			all = append(all, &metricspb.Metric{Name: s.metric, Unit: unit, Data: &metricspb.Metric_Histogram{Histogram: h}})
		}
		h.DataPoints = append(h.DataPoints, &metricspb.HistogramDataPoint{
			Attributes: s.attributes, StartTimeUnixNano: nanos(m.begun), TimeUnixNano: nanos(now), Count: s.count, Sum: new(s.sum),
			Min: new(s.least), Max: new(s.most), BucketCounts: slices.Clone(s.buckets), ExplicitBounds: bounds(s.metric),
		})
	}
	return all
}

func sortedKeys(m map[string]*series) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(strings.Compare(m[a].metric, m[b].metric), strings.Compare(a, b)) })
	return keys
}

func nanos(at time.Time) uint64 { return uint64(max(0, at.UnixNano())) } //nolint:gosec // it is not negative
