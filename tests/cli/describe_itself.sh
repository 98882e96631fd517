# The manual page and the completions that the build installs.
# SPDX-License-Identifier: Apache-2.0
"$CAMEO" --generate man >cameo.1
grep -c '^\.SS' cameo.1
grep '^\.SH' cameo.1
sed -n '/^\.SH NAME/{n;p}' cameo.1
"$CAMEO" --generate bash >cameo.bash
"$CAMEO" --generate zsh >_cameo
head -n 1 cameo.bash _cameo
if command -v bash >/dev/null; then
    bash -n cameo.bash
    bash -c '
. ./cameo.bash
complete_line() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _cameo 2>/dev/null
    echo "$*:" "${COMPREPLY[@]}"
}
complete_line cameo in
complete_line cameo help ch
complete_line cameo copy m.onnx --in
complete_line cameo info --
touch model.onnx
complete_line cameo info mod'
fi
