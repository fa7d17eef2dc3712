package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGoalsAreJudgedWithinARepetition(t *testing.T) {
	at := func(wall, turn time.Duration) sample {
		return sample{Wall: wall, Cold: 10 * time.Millisecond, Overheads: []time.Duration{turn, turn}, CPU: 150 * time.Millisecond}
	}
	r := &report{FsyncP50: 350 * time.Microsecond}
	r.begin("turns", 3)
	r.turns(2, both[sample]{
		// The machine is slower in the second repetition, for both.
		floor: []sample{at(10*time.Millisecond, time.Millisecond), at(40*time.Millisecond, 4*time.Millisecond), at(10*time.Millisecond, time.Millisecond)},
		ours:  []sample{at(20*time.Millisecond, 2600*time.Microsecond), at(80*time.Millisecond, 10400*time.Microsecond), at(20*time.Millisecond, 2600*time.Microsecond)},
	})
	r.begin("parts", 1)
	r.alone("journal", "events/s", 50_000, atLeast(100_000))
	r.begin("crowd", 1)
	compare(r, "rate", "runs/s", both[float64]{[]float64{100}, []float64{50}}, func(v float64) float64 { return v }, atLeast(0.4).ofFloor())
	compare(r, "floor alone", "runs/s", both[float64]{floor: []float64{100}}, func(v float64) float64 { return v }, atLeast(0.4).ofFloor())
	compare(r, "no ratio", "runs/s", both[float64]{ours: []float64{100}}, func(v float64) float64 { return v }, atLeast(0.4).ofFloor())
	type judged struct {
		Ratio float64
		Goal  string
	}
	got := map[string]judged{}
	for _, f := range r.Figures {
		j := judged{Goal: f.Goal.String()}
		if f.Ratio != nil {
			j.Ratio = *f.Ratio
		}
		got[f.Name] = j
	}
	want := map[string]judged{
		"wall of 2 turns":                    {2, "≤ 1.75 × + 0.40 ms disk MISS"},
		"overhead per turn p50":              {2.6, "≤ 2 × + 0.20 ms disk MISS"},
		"overhead per turn p95, from turn 2": {2.6, "≤ 6 + 0.20 ms disk ok"},
		"overhead of turn 1":                 {2.6, "≤ 12 + 0.20 ms disk ok"},
		"cold start to first request":        {1, "≤ 15 ok"},
		"CPU of a run":                       {1, ""},
		"journal":                            {0, "≥ 100000 MISS"},
		"rate":                               {0.5, "≥ 0.4 × ok"},
		"floor alone":                        {0, ""},
		"no ratio":                           {0, "≥ 0.4 × MISS"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	err := r.missed()
	if err == nil || err.Error() != "goals missed: wall of 2 turns, overhead per turn p50, journal, no ratio" {
		t.Errorf("missed = %v", err)
	}
	if err := (&report{}).missed(); err != nil {
		t.Errorf("nothing measured, nothing missed: %v", err)
	}
	r.note("measured %s", "somehow")
	var table bytes.Buffer
	if err := r.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"turns ×3 ", "50000", "crowd: measured somehow", "≥ 0.4 × MISS"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in the table:\n%s", want, &table)
		}
	}
}

func TestGrowthComparesBothEndsOfARun(t *testing.T) {
	run := func(early, late time.Duration) sample {
		var s sample
		for i := range 300 {
			d := (early + late) / 2
			if i < ends {
				d = early
			} else if i >= 250 {
				d = late
			}
			s.Overheads = append(s.Overheads, d)
		}
		return s
	}
	if got := run(time.Millisecond, 3*time.Millisecond).growth(); got != 3 {
		t.Errorf("growth %v, want 3", got)
	}
	if got := (sample{}).growth(); got != 0 {
		t.Errorf("growth of nothing %v", got)
	}
	r := &report{}
	r.begin("long", 1)
	// Ours costs more from the beginning, but grows less.
	r.long(300, both[sample]{[]sample{run(time.Millisecond, 2*time.Millisecond)}, []sample{run(2*time.Millisecond, 3*time.Millisecond)}})
	if err := r.missed(); err != nil {
		t.Error(err)
	}
	r.long(300, both[sample]{[]sample{run(2*time.Millisecond, 3*time.Millisecond)}, []sample{run(time.Millisecond, 2*time.Millisecond)}})
	if err := r.missed(); err == nil {
		t.Error("growth above the floor's own is a miss")
	}
}
