// Trains what a run file describes, in a loop of our own.
//   mpirun -np 2 run_file examples/demo.json [key=value …]
#include <sherd/sherd.h>

#include <algorithm>
#include <cstdio>

using namespace sherd;

void train(RunConfig& run, Communicator& world) {
  Model model = build_model(run.model);  // or any list of units
  if (goes_by_memory(run.placement)) {
    const auto memory = memory_per_rank(run.placement.memory, world.size());
    place_run(run, model, world.size(), memory);
  }
  const TrainingData data(run.data, model.sample, run.seed);
  StepBatches batches(run, data.train(), world.rank(), world.size());
  EngineOptions options = engine_options(run, model, world.size());
  options.threads = std::max(1, run.threads);
  Engine engine(std::move(model), options, world);
  for (std::int64_t step = 0; step < run.steps; ++step) {
    const double loss = engine.step(batches.read(step)).loss;
    if (world.rank() == 0) std::printf("step %d loss %.4f\n", static_cast<int>(step + 1), loss);
  }
}

int main(int argc, char** argv) {
  MpiSession session;
  try {
    require(argc > 1, "usage: run_file RUN.json [key=value …]");
    LoadedConfig config = load_run_config(argv[1], {argv + 2, argv + argc});
    resolve_for_world(config, session.size());
    require_trainable(config);
    train(config.run, *session.world());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: [rank %d] %s\n", session.rank(), error.what());
    session.abort(1);  // the other ranks too: they may be waiting for this one
  }
}
