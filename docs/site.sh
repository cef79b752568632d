#!/usr/bin/env bash
# Builds the documentation as a static site with search. Usage: docs/site.sh DIR | --check
# DIR is made, or replaced where it is such a site; any web server can serve it. Installs mkdocs by package name. --check
# only looks for pages without a place and for old pictures. Exit 1: a link leads nowhere, a page has no place in
# docs/mkdocs.yml, or a picture is older than its source. 64: no DIR, or something else is there.
set -euo pipefail
[ $# = 1 ] || { echo "docs/site.sh: give the directory of the site" >&2; exit 64; }

check() {
  local source picture file
  for source in docs/pictures/*.dot; do
    picture=${source%.dot}.svg
    grep -q "^<!-- $(sha256sum < "$source" | cut -d ' ' -f 1) -->$" "$picture" ||
      echo "docs/site.sh: $picture is older than its source: docs/pictures/draw.sh $source > $picture"
  done
  git ls-files '*.md' | while read -r file; do
    grep -qF ": $file" docs/mkdocs.yml || echo "docs/site.sh: $file has no place in docs/mkdocs.yml"
  done
}

if [ "$1" = --check ]; then
  cd "$(dirname "$0")/.."
  findings=$(check)
  [ -z "$findings" ] || { echo "$findings" >&2; exit 1; }
  exit 0
fi
out=$(realpath -m -- "$1")
cd "$(dirname "$0")/.."
if [ -e "$out" ] && [ ! -e "$out/search/search_index.json" ] && [ -n "$(ls -A "$out" 2> /dev/null)" ]; then
  echo "docs/site.sh: $out is there and is no site" >&2
  exit 64
fi
deploy/packages.sh docs

findings=$(check)
[ -z "$findings" ] || { echo "$findings" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp docs/mkdocs.yml "$work"
# Pages and pictures, and the sources that pages link to.
{
  git ls-files '*.md' 'docs/pictures/*.svg'
  git ls-files '*.md' | while read -r page; do
    { grep -oE '\]\([^)#: ]+' "$page" || true; } | sed 's/^](//' | while read -r target; do
      target=$(realpath -m --relative-to=. "$(dirname "$page")/$target")
      [ ! -f "$target" ] || echo "$target"
    done
  done
} | sort -u | while read -r file; do
  install -D -m 644 "$file" "$work/pages/$file"
done
if ! mkdocs build --strict --clean --config-file "$work/mkdocs.yml" --site-dir "$out" > "$work/log" 2>&1; then
  grep -vE 'INFO' "$work/log" >&2
  exit 1
fi
echo "$out/index.html"
