#!/usr/bin/env python3
"""Trains the model of a run file in PyTorch on CPUs and prints tokens/s, one JSON line a mode.

The same shapes, batch, fp32 arithmetic, AdamW and clipping as `sherd train RUN.json` on 2 ranks:
  single  one process with a thread per core
  ddp     a process per core, gradients all-reduced through gloo
  fsdp2   a process per core, parameters, gradients and state sharded through gloo (fully_shard)

  python3 benchmarks/peers/pytorch_cpu.py [RUN.json=examples/demo.json] [--modes single,ddp,fsdp2] [--compile]
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.head_dim = c["hidden_size"] // self.heads
        self.q_proj = nn.Linear(c["hidden_size"], self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(c["hidden_size"], self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(c["hidden_size"], self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, c["hidden_size"], bias=False)

    def forward(self, x, cos, sin):
        B, T, _ = x.shape
        q = rotate(self.q_proj(x).view(B, T, self.heads, self.head_dim).transpose(1, 2), cos, sin)
        k = rotate(self.k_proj(x).view(B, T, self.kv_heads, self.head_dim).transpose(1, 2), cos, sin)
        v = self.v_proj(x).view(B, T, self.kv_heads, self.head_dim).transpose(1, 2)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(B, T, -1))


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden, inner = c["hidden_size"], c["intermediate_size"]
        self.input_norm, self.post_norm = nn.RMSNorm(hidden, 1e-5), nn.RMSNorm(hidden, 1e-5)
        self.attention = Attention(c)
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.input_norm(x), cos, sin)
        y = self.post_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Llama(nn.Module):
    def __init__(self, c, sequence):
        super().__init__()
        self.embedding = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.norm = nn.RMSNorm(c["hidden_size"], 1e-5)
        self.head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        head_dim = c["hidden_size"] // c["num_attention_heads"]
        inverse = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
        angle = torch.outer(torch.arange(sequence), inverse)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


def read_run(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(re.sub(r"(?m)//.*$", "", file.read()))


def shard(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def accumulating(mode, model, last):
    """Gradients travel with the last micro-batch only."""
    if mode == "fsdp2":
        model.set_requires_gradient_sync(last)
    return model.no_sync() if mode == "ddp" and not last else contextlib.nullcontext()


def train(mode, run, steps, warm_up, compiled):
    world = dist.get_world_size() if dist.is_initialized() else 1
    rank = dist.get_rank() if dist.is_initialized() else 0
    torch.manual_seed(1)
    sequence, micro = run["data"]["sequence_length"], run["train_micro_batch_size_per_gpu"]
    rounds = run["train_batch_size"] // (micro * world)
    model = Llama(run["model"], sequence)
    if compiled:
        model.compile()
    if mode == "ddp":
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    elif mode == "fsdp2":
        model = shard(model)
    settings = run["optimizer"]["params"]
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings["lr"], betas=settings["betas"], weight_decay=settings["weight_decay"], fused=True)
    with open(run["data"]["train"], "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    pick = torch.Generator().manual_seed(1 + rank)

    times, losses = [], []
    for step in range(warm_up + steps):
        start = time.perf_counter()
        total = 0.0
        for turn in range(rounds):
            starts = torch.randint(len(text) - sequence - 1, (micro,), generator=pick)
            rows = torch.stack([text[s : s + sequence + 1] for s in starts]).long()
            with accumulating(mode, model, turn == rounds - 1):
                loss = model(rows[:, :-1], rows[:, 1:]) / rounds
                loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), run["gradient_clipping"])
        optimizer.step()
        optimizer.zero_grad()
        if step >= warm_up:
            times.append(time.perf_counter() - start)
        losses.append(total)
    tokens = run["train_batch_size"] * sequence
    return {
        "mode": mode + (" compiled" if compiled else ""), "ranks": world, "threads_per_rank": torch.get_num_threads(),
        "tokens_per_s": round(tokens / statistics.median(times)), "step_ms": round(1e3 * statistics.median(times), 1),
        "first_loss": round(losses[0], 3), "last_loss": round(losses[-1], 3), "steps": len(losses),
        "torch": torch.__version__, "load_average": round(os.getloadavg()[0], 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", default="examples/demo.json")
    parser.add_argument("--modes", default="single,ddp,fsdp2")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()

    threads = max(1, len(os.sched_getaffinity(0)) // options.ranks)
    if "RANK" in os.environ:  # one rank of what is started below
        torch.set_num_threads(threads)
        dist.init_process_group("gloo")
    elif options.modes != "single":
        for mode in options.modes.split(","):
            launcher = [] if mode == "single" else [
                "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={options.ranks}"]
            own = [f"--{key.replace('_', '-')}={value}" for key, value in vars(options).items()
                   if key not in ("run", "modes", "compile")] + ["--compile"] * options.compile
            environment = os.environ | {"OMP_NUM_THREADS": str(threads)} if launcher else os.environ
            result = subprocess.run(
                [sys.executable, *launcher, __file__, options.run, *own, f"--modes={mode}"], check=False, env=environment)
            if result.returncode != 0:
                print(json.dumps({"mode": mode, "failed": result.returncode}), flush=True)
        return
    result = train(options.modes, read_run(options.run), options.steps, options.warm_up, options.compile)
    if not dist.is_initialized() or dist.get_rank() == 0:
        print(json.dumps(result), flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
