#!/bin/sh
# Installs agentctl: downloads the archive for this machine, compares it with its checksum,
# and puts the programs below a prefix. Without a match nothing is installed.
#
#   AGENTCTL_VERSION   the version; default @VERSION@
#   AGENTCTL_PREFIX    where to: bin/ and libexec/agentctl/ below it; default ~/.local
#   AGENTCTL_SHA256    the checksum that the archive must have, from where you trust it.
#                      Without it that of checksums.txt counts, which comes from the same
#                      server as the archive.
#   AGENTCTL_BASE_URL  a mirror: VERSION/FILE is below it. https://, file:// or, with
#                      AGENTCTL_SHA256, http://
#   AGENTCTL_CACHE     a folder that keeps the archive. It is used only with AGENTCTL_SHA256,
#                      with which it is compared each time
set -eu

# All of it is in a function that the last line calls: half a script does nothing.
main() {
	version=${AGENTCTL_VERSION:-@VERSION@}
	base=${AGENTCTL_BASE_URL:-https://agentctl.dev/releases}
	base=${base%/}
	prefix=${AGENTCTL_PREFIX:-${HOME:?set HOME or AGENTCTL_PREFIX}/.local}
	pinned=${AGENTCTL_SHA256:-}
	cache=${AGENTCTL_CACHE:-}

	case $version in
	v[0-9]*) ;;
	*) die "version \"$version\": write it as in v0.1.0" ;;
	esac
	case $version in
	*[!A-Za-z0-9.+-]*) die "version \"$version\" has characters that no version has" ;;
	esac
	case $base in
	https://* | file://*) ;;
	http://*) [ -n "$pinned" ] || die "$base: anybody on the way can exchange what http:// brings; set AGENTCTL_SHA256, or use https://" ;;
	*) die "AGENTCTL_BASE_URL \"$base\": begin it with https://" ;;
	esac
	case $pinned in
	*[!0-9a-f]*) die "AGENTCTL_SHA256 is not a checksum: 64 digits of 0-9 and a-f" ;;
	esac

	os=$(uname -s)
	case $os in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) die "there is no agentctl for $os" ;;
	esac
	arch=$(uname -m)
	case $arch in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) die "there is no agentctl for $arch" ;;
	esac
	folder=agentctl_${version}_${os}_${arch}
	archive=$folder.tar.gz

	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	if [ -n "$pinned" ] && [ -n "$cache" ] && [ -f "$cache/$archive" ] && cp "$cache/$archive" "$work" && [ "$(checksum "$work/$archive")" = "$pinned" ]; then
		echo "$archive is in $cache"
	else
		download
	fi

	tar -xzf "$work/$archive" -C "$work"
	for part in bin libexec/agentctl; do
		[ -d "$work/$folder/$part" ] || continue
		mkdir -p "$prefix/$part"
		for program in "$work/$folder/$part"/*; do
			name=${program##*/}
			# A program that runs cannot be written to; its name can be given to another.
			cp "$program" "$prefix/$part/.$name.new"
			chmod 755 "$prefix/$part/.$name.new"
			mv -f "$prefix/$part/.$name.new" "$prefix/$part/$name"
		done
	done
	echo "installed agentctl $version in $prefix"
	case :${PATH:-}: in
	*":$prefix/bin:"*) ;;
	*) echo "next: export PATH=$prefix/bin:\$PATH" ;;
	esac
}

# download fetches the archive and compares it with its checksums.
download() {
	fetch "$base/$version/checksums.txt" "$work/checksums.txt"
	fetch "$base/$version/$archive" "$work/$archive"
	want=$(awk -v name="$archive" '$2 == name { print $1 }' "$work/checksums.txt")
	[ -n "$want" ] || die "checksums.txt of $version does not name $archive"
	got=$(checksum "$work/$archive")
	[ "$got" = "$want" ] || die "$archive has the checksum $got, checksums.txt names $want: nothing was installed"
	[ -z "$pinned" ] || [ "$got" = "$pinned" ] || die "$archive has the checksum $got, AGENTCTL_SHA256 is $pinned: nothing was installed"
	if [ -n "$pinned" ] && [ -n "$cache" ]; then
		mkdir -p "$cache"
		cp "$work/$archive" "$cache/.$archive.new"
		mv -f "$cache/.$archive.new" "$cache/$archive"
	fi
}

die() {
	echo "install.sh: $*" >&2
	exit 1
}

# fetch URL FILE: an http:// that was not asked for is not followed.
fetch() {
	if command -v curl >/dev/null 2>&1; then
		curl -fsSL --retry 3 --max-time 600 --proto '=https,http,file' --proto-redir '=https' -o "$2" "$1" || die "could not download $1"
	elif command -v wget >/dev/null 2>&1; then
		wget -q -O "$2" "$1" || die "could not download $1"
	else
		die "neither curl nor wget is here: install one of them"
	fi
}

checksum() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1" | cut -d' ' -f1
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 "$1" | cut -d' ' -f1
	else
		die "neither sha256sum nor shasum is here: the download cannot be verified"
	fi
}

main
