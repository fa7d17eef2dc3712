package report

import "fmt"

// Comparison is what has changed since an earlier report.
type Comparison struct {
	// Baseline is the file of the earlier report.
	Baseline string `json:"baseline"`
	// Tolerance in percent, by which steps and cost may grow.
	Tolerance float64 `json:"tolerance"`
	// Regressions make the comparison fail.
	Regressions []Change `json:"regressions"`
	// Improvements are cases that failed before and pass, and columns that use less.
	Improvements []Change `json:"improvements"`
	// Missing are cases of the earlier report that were not run now, New those that are not in
	// it.
	Missing []string `json:"missing"`
	New     []string `json:"new"`
}

// Change is a difference between two reports.
type Change struct {
	// What is passed, steps or cost.
	What string `json:"what"`
	// Case is its name; "" for a whole column.
	Case   string `json:"case,omitempty"`
	Model  string `json:"model,omitempty"`
	Policy string `json:"policy,omitempty"`
	Before string `json:"before"`
	Now    string `json:"now"`
}

// key identifies a case in a column.
type key struct{ name, model, policy string }

func (c *Case) key() key { return key{c.Name(), c.Model, c.Policy} }

// Compare compares the report with an earlier one. Of both only the cases that were run are
// looked at. A case regresses that fails now, unless it failed before; a column regresses
// whose cases, as far as they passed in both, take more steps or cost more than the
// tolerance in percent lets them.
func (r *Report) Compare(before *Report, baseline string, tolerance float64) {
	c := &Comparison{Baseline: baseline, Tolerance: tolerance, Regressions: []Change{}, Improvements: []Change{}, Missing: []string{}, New: []string{}}
	was, seen := map[key]*Case{}, map[key]bool{}
	for i := range before.Results {
		if old := &before.Results[i]; old.NotRun == "" {
			was[old.key()] = old
		}
	}
	for i := range r.Results {
		now := &r.Results[i]
		if now.NotRun != "" {
			continue
		}
		old, known := was[now.key()]
		seen[now.key()] = true
		change := Change{What: "passed", Case: now.Name(), Model: now.Model, Policy: now.Policy, Before: "passed", Now: "failed"}
		switch {
		case !known:
			c.New = append(c.New, now.key().String())
			if !now.Pass {
				change.Before = "not there"
				c.Regressions = append(c.Regressions, change)
			}
		case old.Pass && !now.Pass:
			c.Regressions = append(c.Regressions, change)
		case !old.Pass && now.Pass:
			change.Before, change.Now = change.Now, change.Before
			c.Improvements = append(c.Improvements, change)
		}
	}
	for i := range before.Results {
		if old := &before.Results[i]; old.NotRun == "" && !seen[old.key()] {
			c.Missing = append(c.Missing, old.key().String())
		}
	}
	for i := range r.Columns {
		c.column(r, was, &r.Columns[i])
	}
	r.Comparison = c
}

// column compares what the cases of a column took that passed in both reports.
func (c *Comparison) column(r *Report, was map[key]*Case, column *Column) {
	var before, now Used
	for i := range r.Results {
		one := &r.Results[i]
		old, known := was[one.key()]
		if known && one.Model == column.Model && one.Policy == column.Policy && one.Pass && old.Pass {
			before.Add(old.Used)
			now.Add(one.Used)
		}
	}
	c.grown(Change{What: "steps", Model: column.Model, Policy: column.Policy, Before: fmt.Sprint(before.Steps), Now: fmt.Sprint(now.Steps)}, int64(before.Steps), int64(now.Steps))
	if before.Unpriced || now.Unpriced {
		return // one of the sums is too low
	}
	c.grown(Change{What: "cost", Model: column.Model, Policy: column.Policy, Before: "$" + before.Cost.String(), Now: "$" + now.Cost.String()}, int64(before.Cost), int64(now.Cost))
}

func (c *Comparison) grown(change Change, before, now int64) {
	most := float64(before) * (1 + c.Tolerance/100)
	switch {
	case float64(now) > most:
		c.Regressions = append(c.Regressions, change)
	case now < before:
		c.Improvements = append(c.Improvements, change)
	}
}

func (k key) String() string {
	text := k.name
	for _, part := range []string{k.model, k.policy} {
		if part != "" {
			text += ", " + part
		}
	}
	return text
}
