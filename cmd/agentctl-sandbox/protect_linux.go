package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// guarded is a path that programs may not change, or not read.
type guarded struct {
	name string
	// cover lays something over what is open at at.
	cover func(root folder, at int) error
	// links follows a link at the end.
	links bool
}

// protect makes existing paths read-only or unreadable. Paths that do not exist
// are returned. A folder between a writable folder and a protected path is
// bound onto itself. A mount can be neither renamed nor removed; otherwise a
// program could move the folder away and put another in its place. The path is
// covered before that, in place: a program that has had the folder open does
// not see later mounts on it.
func protect(fixed, masked, writable []string) (absent []string, err error) {
	root, err := openFolder("/")
	if err != nil {
		return nil, err
	}
	defer root.close()
	var all []guarded
	for _, name := range fixed {
		all = append(all, guarded{name, freeze, false})
	}
	for _, name := range masked {
		all = append(all, guarded{name, mask, true})
	}
	for _, step := range []func(*guarded) error{
		func(g *guarded) error { return g.lay(root, true) },
		func(g *guarded) error { return pin(root, g.name, writable) },
		func(g *guarded) error { // it may have been renamed meanwhile
			err := g.lay(root, false)
			if notThere(err) {
				absent = append(absent, g.name)
			}
			return err
		},
	} {
		for i := range all {
			if err := step(&all[i]); err != nil && !notThere(err) {
				return absent, fmt.Errorf("protect %s: %w", all[i].name, err)
			}
		}
	}
	return absent, nil
}

func notThere(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// lay covers the path: always, or only where it is not covered yet.
func (g *guarded) lay(root folder, always bool) error {
	at, err := reach(root, g.name, g.links)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	if !always {
		if covered, err := mounted(at); covered || err != nil {
			return err
		}
	}
	return g.cover(root, at)
}

// freeze makes the open file at read-only, with all mounts below it. The
// descriptor at may be that of a folder.
func freeze(_ folder, at int) error { return overlay(at, readOnly) }

// overlay binds the open file at onto itself.
func overlay(at int, attrs uint64) error {
	tree, err := clone(at, unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	return cover(tree, at, attrs)
}

// reach opens the file at the end of a path. A link there is followed where
// links are allowed: its target is what would be read. A link that must not
// change cannot be protected, for nothing can be mounted on it.
func reach(root folder, name string, links bool) (int, error) {
	at, err := root.open(name)
	if !errors.Is(err, unix.ELOOP) {
		return at, err
	}
	if !links {
		return -1, fmt.Errorf("it is a link, or behind one, and a link can be replaced: %w", err)
	}
	above, err := root.open(path.Dir(name))
	if err != nil {
		return -1, err // a link on the way leads to another file
	}
	_ = unix.Close(above)
	return openat2(root.fd, strings.TrimPrefix(name, "/"), unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
}

// pin binds each folder between a writable one and the path onto itself.
func pin(root folder, name string, writable []string) error {
	top := ""
	for _, dir := range writable { // the highest: what is below it may be writable through it
		if dir != "" && strings.HasPrefix(name, dir+"/") && (top == "" || len(dir) < len(top)) {
			top = dir
		}
	}
	if top == "" {
		return nil
	}
	var between []string
	for dir := path.Dir(name); dir != top && len(dir) > len(top); dir = path.Dir(dir) {
		between = append(between, dir)
	}
	for _, dir := range slices.Backward(between) {
		at, err := root.open(dir)
		if err != nil {
			return err // a link, which the path must not go through, or nothing
		}
		err = pinOne(at)
		_ = unix.Close(at)
		if err != nil {
			return fmt.Errorf("pin %s: %w", dir, err)
		}
	}
	return nil
}

// pinOne makes a folder a mount, unless it is one.
func pinOne(at int) error {
	if is, err := mounted(at); is || err != nil {
		return err
	}
	return overlay(at, readable)
}

// mounted reports whether the open file is the root of a mount.
func mounted(at int) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(at, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st)
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, err
}
