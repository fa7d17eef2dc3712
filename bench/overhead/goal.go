package main

import "fmt"

// goal bounds the ratio to the floor, or the value.
type goal struct {
	Of    string  `json:"of"` // ratio | value
	Most  float64 `json:"most,omitempty"`
	Least float64 `json:"least,omitempty"`
	// Allowance is added to Most × floor on disks slower than the goal assumes.
	Allowance float64 `json:"allowance,omitempty"`
	Met       bool    `json:"met"`
}

const (
	ofRatio = "ratio"
	ofValue = "value"
)

func atMost(value float64) *goal      { return &goal{Of: ofValue, Most: value} }
func atLeast(value float64) *goal     { return &goal{Of: ofValue, Least: value} }
func atMostFloor(ratio float64) *goal { return atMost(ratio).ofFloor() }

// ofFloor makes it a goal of the ratio.
func (g *goal) ofFloor() *goal {
	g.Of = ofRatio
	return g
}

// slack grants what a slow disk costs, in the unit of the figure.
func (g *goal) slack(allowance float64) *goal {
	g.Allowance = allowance
	return g
}

func (g *goal) judge(f figure) {
	value, allowance := f.Agentctl, g.Allowance
	if g.Of == ofRatio {
		value = f.Ratio
		if f.Floor != nil && *f.Floor > 0 {
			allowance /= *f.Floor
		}
	}
	switch {
	case value == nil:
		g.Met = false // what was not measured is not reached
	case g.Least > 0:
		g.Met = *value >= g.Least
	default:
		g.Met = *value <= g.Most+allowance
	}
}

func (g *goal) String() string {
	if g == nil {
		return ""
	}
	sign, bound, times := "≤", g.Most, ""
	if g.Least > 0 {
		sign, bound = "≥", g.Least
	}
	if g.Of == ofRatio {
		times = " ×"
	}
	text := fmt.Sprintf("%s %s%s", sign, number(&bound), times)
	if g.Allowance > 0 {
		text += fmt.Sprintf(" + %.2f ms disk", g.Allowance)
	}
	if g.Met {
		return text + " ok"
	}
	return text + " MISS"
}
