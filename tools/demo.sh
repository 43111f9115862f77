#!/usr/bin/env bash
# From a bare checkout to a trained model: set-up, build, a Llama trained in shards on two CPU ranks.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kRanks=2 kRun=examples/demo.json kOutput=runs/demo kSherd=build/release/apps/sherd

case ${1-} in
  --help | -h)
    echo "usage: tools/demo.sh [OPTION OF sherd train…]"
    echo "Sets up, builds, and trains $kRun with mpirun -np $kRanks into $kOutput; options such as"
    echo "--set steps=50 are handed on. Then samples from what was trained."
    exit
    ;;
esac

tools/setup.sh --no-lint
tools/build.sh release apps/sherd

threads=$(($(nproc) / kRanks))
export OMP_NUM_THREADS=$((threads > 0 ? threads : 1))
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
rm -rf "$kOutput"
echo "== mpirun -np $kRanks $kSherd train $kRun $*"
mpirun --oversubscribe --bind-to none -np $kRanks "$kSherd" train $kRun "$@" < /dev/null

echo "== $kSherd generate $kOutput --prompt 'And God said'"
"$kSherd" generate $kOutput --prompt "And God said" < /dev/null

python3 - $kOutput/metrics.jsonl data/bible.txt << 'PYTHON'
import collections, json, math, sys
metrics, text = sys.argv[1:]
steps = [json.loads(line) for line in open(metrics)]
losses = [step["loss"] for step in steps if "loss" in step]
validation = [step["val_loss"] for step in steps if step.get("val_loss") is not None]
counts = collections.Counter(open(text, "rb").read())
total = sum(counts.values())
entropy = -sum(n / total * math.log(n / total) for n in counts.values())
last = losses[-10:]
print(f"== loss {losses[0]:.3f} -> {sum(last) / len(last):.3f} nats per byte in {len(losses)} steps"
      + (f", validation {validation[-1]:.3f}" if validation else ""))
print(f"   guessing by letter frequency alone (the unigram entropy of {text}) gives {entropy:.3f}")
PYTHON
echo "== done in $SECONDS s; the trained model is in $kOutput/model"
