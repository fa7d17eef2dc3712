package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
)

// Program is one of cmd/.
type Program struct {
	Name string
	// Libexec is set for those that agentctl starts: they are not for the PATH.
	Libexec bool
	// Everywhere is set for those that work on other systems than Linux.
	Everywhere bool
}

// programs are those of a release.
var programs = []Program{
	{Name: "agentctl", Everywhere: true},
	{Name: "agentd"},
	{Name: "agentctl-tools", Libexec: true, Everywhere: true},
	{Name: "agentctl-sandbox", Libexec: true},
	{Name: "agentctl-entry", Libexec: true},
	{Name: "agentctl-escape", Libexec: true},
}

// Platform is what a program is built for.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

var platforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// binary is a program that was built.
type binary struct {
	Program
	Platform
	// File is where it is, SHA256 its digest in hex.
	File, SHA256 string
	Info         *buildinfo.BuildInfo
}

// path is where it is installed below a prefix.
func (b *binary) path() string {
	if b.Libexec {
		return "libexec/agentctl/" + b.Name
	}
	return "bin/" + b.Name
}

// compile builds the programs for a platform. What they contain follows from the source, the
// modules and the version of Go alone: no path, no date, no setting of this machine.
func (o *Options) compile(ctx context.Context, src *source, p Platform, dir string) ([]binary, error) {
	dir = filepath.Join(dir, p.OS+"_"+p.Arch)
	var built []binary
	args := []string{"build", "-trimpath", "-buildvcs=true", "-mod=readonly", "-tags", "grpcnotrace", "-ldflags", "-s -w -buildid=", "-o", dir + "/"}
	for _, program := range o.Programs {
		if p.OS == "linux" || program.Everywhere {
			built = append(built, binary{Program: program, Platform: p, File: filepath.Join(dir, program.Name)})
			args = append(args, "./cmd/"+program.Name)
		}
	}
	if len(built) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = src.Dir
	cmd.Env = append(os.Environ(), "GOOS="+p.OS, "GOARCH="+p.Arch, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GODEBUG=")
	if _, err := cmd.Output(); err != nil {
		return nil, fmt.Errorf("build for %s: %w", p, explain(cmd, err))
	}
	for i := range built {
		b := &built[i]
		var err error
		if b.SHA256, err = digest(b.File); err != nil {
			return nil, err
		}
		if b.Info, err = buildinfo.ReadFile(b.File); err != nil {
			return nil, err
		}
		if err := o.check(b, src); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// check refuses a program that would not say what it was built from.
func (o *Options) check(b *binary, src *source) error {
	setting := func(key string) string {
		i := slices.IndexFunc(b.Info.Settings, func(s debug.BuildSetting) bool { return s.Key == key })
		if i < 0 {
			return ""
		}
		return b.Info.Settings[i].Value
	}
	switch {
	case b.Info.Main.Version != o.Version:
		return fmt.Errorf("%s for %s is stamped with version %q, not with %s", b.Name, b.Platform, b.Info.Main.Version, o.Version)
	case setting("vcs.revision") != src.Commit || setting("vcs.modified") != "false":
		return fmt.Errorf("%s for %s is stamped with commit %q (modified: %q), not with %s", b.Name, b.Platform, setting("vcs.revision"), setting("vcs.modified"), src.Commit)
	case setting("CGO_ENABLED") != "0":
		return fmt.Errorf("%s for %s was built with cgo", b.Name, b.Platform)
	}
	return nil
}

func digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
