# Arguments come as JSON on standard input: {"path": "..."}.
file=$(sed -n 's/.*"path" *: *"\([^"]*\)".*/\1/p')
[ -f "$file" ] || { echo "there is no file $file" >&2; exit 1; }
folder=$(dirname "$file")
status=0
for link in $(grep -o '](\([^)#:]*\))' "$file" | sed 's/^](//; s/)$//'); do
	[ -e "$folder/$link" ] || { echo "$file: $link leads nowhere"; status=1; }
done
[ "$status" = 0 ] && echo "all relative links of $file lead to files"
exit "$status"
