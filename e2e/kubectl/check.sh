# Checks on commands: each prints one line, `ok` or `FAIL` with what differs. Sourced by run.

passed=0
failed=0

ok() {
    passed=$((passed + 1))
    printf 'ok    %s\n' "$1"
}

# not_ok NAME WHY
not_ok() {
    failed=$((failed + 1))
    printf 'FAIL  %s\n' "$1"
    sed 's/^/        /' <<<"$2"
}

# prints NAME EXPECTED COMMAND...: succeeds and its output, normalised, is exactly EXPECTED.
prints() {
    local name=$1 expected=$2 output code=0
    shift 2
    output=$(bounded "$@" 2>&1) || code=$?
    output=$("$normalise" <<<"$output")
    if [ "$code" -eq 0 ] && [ "$output" = "$expected" ]; then
        ok "$name"
    else
        not_ok "$name" "exit code $code, expected (-) and got (+):
$(diff -U1 <(echo "$expected") <(echo "$output") | tail -n +3 || true)"
    fi
}

# says NAME PATTERN COMMAND...: succeeds and its output has a line that matches PATTERN.
says() {
    local name=$1 pattern=$2 output code=0
    shift 2
    output=$(bounded "$@" 2>&1) || code=$?
    judge "$name" "$pattern" "$output" "$([ "$code" -eq 0 ] && echo yes)" "$code"
}

# refuses NAME PATTERN COMMAND...: fails (by itself, not by taking too long) and says why.
refuses() {
    local name=$1 pattern=$2 output code=0
    shift 2
    output=$(bounded "$@" 2>&1) || code=$?
    judge "$name" "$pattern" "$output" "$([ "$code" -ne 0 ] && [ "$code" -ne 124 ] && echo yes)" "$code"
}

judge() {
    local name=$1 pattern=$2 output=$3 code_is_right=$4 code=$5
    if [ -n "$code_is_right" ] && grep -qE -- "$pattern" <<<"$output"; then
        ok "$name"
    else
        not_ok "$name" "exit code $code, expected a line like: $pattern
got:
$output"
    fi
}

# eventually NAME PATTERN COMMAND...: within a minute a run of the command succeeds and matches.
eventually() {
    local name=$1 pattern=$2 output deadline=$((SECONDS + 60))
    shift 2
    while :; do
        if output=$(bounded "$@" 2>&1) && grep -qE -- "$pattern" <<<"$output"; then
            ok "$name"
            return
        fi
        [ "$SECONDS" -lt "$deadline" ] || break
        sleep 0.5
    done
    not_ok "$name" "not within a minute; expected a line like: $pattern
last got:
$output"
}

# A server that never answers must not hang the run.
bounded() { timeout "${COMMAND_SECONDS:-90}" "$@"; }

close() {
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
}
