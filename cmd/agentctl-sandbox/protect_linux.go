package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// protect makes paths read-only or unreadable that exist by now. What does not
// exist is returned. A folder between the workspace and a protected path is bound
// onto itself: a mount can be neither renamed nor removed, and who could move the
// folder away could put another one in its place.
func protect(fixed, masked []string, workspace string) (absent []string, err error) {
	root, err := openFolder("/")
	if err != nil {
		return nil, err
	}
	defer root.close()
	each := func(list []string, links bool, cover func(folder, int) error) error {
		for _, name := range list {
			at, err := reach(root, name, workspace, links)
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
				absent = append(absent, name)
				continue
			}
			if err == nil {
				err = cover(root, at)
				_ = unix.Close(at)
			}
			if err != nil {
				return fmt.Errorf("protect %s: %w", name, err)
			}
		}
		return nil
	}
	if err := each(fixed, false, freeze); err != nil {
		return absent, err
	}
	return absent, each(masked, true, mask)
}

// freeze makes what is open at at read-only, with all mounts below it.
func freeze(_ folder, at int) error { return overlay(at, readOnly) }

// overlay binds what is open at at onto itself.
func overlay(at int, attrs uint64) error {
	tree, err := clone(at, unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	return cover(tree, at, attrs)
}

// reach pins the folders on the way and opens what stands at the end. A link at
// the end is followed where links may be: what it leads to is what would be read.
// One that must not change cannot be protected, for nothing can be mounted on it.
func reach(root folder, name, workspace string, links bool) (int, error) {
	if workspace != "" && strings.HasPrefix(name, workspace+"/") {
		if err := pin(root, name, workspace); err != nil {
			return -1, err
		}
	}
	if links {
		return openat2(root.fd, strings.TrimPrefix(name, "/"), unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
	}
	at, err := root.open(name)
	if errors.Is(err, unix.ELOOP) {
		return -1, fmt.Errorf("it is a link, or behind one, and a link can be replaced: %w", err)
	}
	return at, err
}

// pin binds each folder between the workspace and the path onto itself.
func pin(root folder, name, workspace string) error {
	var between []string
	for dir := path.Dir(name); dir != workspace && len(dir) > len(workspace); dir = path.Dir(dir) {
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
	var st unix.Statx_t
	if err := unix.Statx(at, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st); err != nil {
		return err
	}
	if st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return nil
	}
	return overlay(at, readable)
}
