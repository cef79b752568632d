#!/usr/bin/env bash
# Builds the documentation as a static site with search. Usage: docs/site.sh DIR
# DIR is made, or replaced where it is such a site; any web server can serve it. Installs mkdocs by package name. Exit 1:
# a link leads nowhere, a page has no place in docs/mkdocs.yml, or a picture is older than its source. 64: no DIR, or
# something else is there.
set -euo pipefail
[ $# = 1 ] || { echo "docs/site.sh: give the directory of the site" >&2; exit 64; }
out=$(realpath -m -- "$1")
cd "$(dirname "$0")/.."
if [ -e "$out" ] && [ ! -e "$out/search/search_index.json" ] && [ -n "$(ls -A "$out" 2> /dev/null)" ]; then
  echo "docs/site.sh: $out is there and is no site" >&2
  exit 64
fi
deploy/packages.sh docs

for source in docs/pictures/*.dot; do
  picture=${source%.dot}.svg
  grep -q "^<!-- $(sha256sum < "$source" | cut -d ' ' -f 1) -->$" "$picture" ||
    { echo "docs/site.sh: $picture is older than its source: docs/pictures/draw.sh $source > $picture" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp docs/mkdocs.yml "$work"
mapfile -t files < <(git ls-files '*.md' 'docs/pictures/*.svg')
for file in "${files[@]}"; do
  install -D -m 644 "$file" "$work/pages/$file"
  if [[ $file == *.md ]] && ! grep -qF ": $file" docs/mkdocs.yml; then
    echo "docs/site.sh: $file has no place in docs/mkdocs.yml" >&2
    exit 1
  fi
done
mkdocs build --strict --quiet --clean --config-file "$work/mkdocs.yml" --site-dir "$out"
echo "$out/index.html"
