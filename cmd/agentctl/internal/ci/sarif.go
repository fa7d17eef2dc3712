package ci

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// SarifSchema is where the schema of the reports is published.
const SarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Automation  *sarifAutomation  `json:"automationDetails,omitempty"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
	Columns     string            `json:"columnKind"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name        string      `json:"name"`
	Information string      `json:"informationUri"`
	Version     string      `json:"version,omitempty"`
	Rules       []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string     `json:"id"`
	Short *sarifText `json:"shortDescription,omitempty"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifAutomation struct {
	ID string `json:"id"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	ExitCode      int                 `json:"exitCode"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level   Level     `json:"level"`
	Message sarifText `json:"message"`
}

type sarifResult struct {
	Rule         string            `json:"ruleId"`
	Index        int               `json:"ruleIndex"`
	Level        Level             `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations,omitempty"`
	Fingerprints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI  string `json:"uri"`
	Base string `json:"uriBaseId,omitempty"`
}

type sarifRegion struct {
	Line   int `json:"startLine"`
	Column int `json:"startColumn,omitempty"`
}

// Analysis is what a SARIF report is about.
type Analysis struct {
	// Category tells reports of the same tool apart.
	Category string
	// Version of this program.
	Version string
	// ExitCode of the program, and Problem is why it is not 0; "" where the findings say it.
	ExitCode int
	Problem  string
	Findings []Finding
	// Rules describe rules by their id. Optional.
	Rules map[string]string
}

// unnamed is the rule of findings without one.
const unnamed = "finding"

// SARIF returns the analysis as SARIF 2.1.0.
func (a *Analysis) SARIF() ([]byte, error) {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "agentctl", Information: "https://agentctl.dev", Version: a.Version, Rules: []sarifRule{}}},
		Invocations: []sarifInvocation{{Successful: a.Problem == "", ExitCode: a.ExitCode}},
		Results:     []sarifResult{}, Columns: "unicodeCodePoints",
	}
	if a.Category != "" {
		run.Automation = &sarifAutomation{ID: "agentctl/" + a.Category + "/"}
	}
	if a.Problem != "" {
		run.Invocations[0].Notifications = []sarifNotification{{Level: Error, Message: sarifText{a.Problem}}}
	}
	index, same := map[string]int{}, map[string]int{}
	for _, f := range a.Findings {
		if f.Rule == "" {
			f.Rule = unnamed
		}
		i, known := index[f.Rule]
		if !known {
			i = len(index)
			index[f.Rule] = i
			rule := sarifRule{ID: f.Rule}
			if text := a.Rules[f.Rule]; text != "" {
				rule.Short = &sarifText{text}
			}
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
		sum := fingerprint(&f)
		same[sum]++
		r := sarifResult{
			Rule: f.Rule, Index: i, Level: f.Level, Message: sarifText{f.Message},
			Fingerprints: map[string]string{"agentctl/v1": sum + ":" + strconv.Itoa(same[sum])},
		}
		if f.File != "" {
			at := sarifPhysical{Artifact: sarifArtifact{URI: uri(f.File), Base: "%SRCROOT%"}}
			if f.Line > 0 {
				at.Region = &sarifRegion{Line: f.Line, Column: f.Column}
			}
			r.Locations = []sarifLocation{{at}}
		}
		run.Results = append(run.Results, r)
	}
	text, err := json.MarshalIndent(sarifLog{Schema: SarifSchema, Version: "2.1.0", Runs: []sarifRun{run}}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("make a SARIF report: %w", err)
	}
	return append(text, '\n'), nil
}

// fingerprint is the same for a finding whose line has moved.
func fingerprint(f *Finding) string {
	sum := sha256.Sum256([]byte(f.Rule + "\x00" + f.File + "\x00" + f.Message))
	return hex.EncodeToString(sum[:16])
}
