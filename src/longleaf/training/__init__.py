"""Training the classifiers of label trees.

`trees` trains one tree after the other on `TrainingData`, by the `solver`, with costs that
`positive_weight` may raise. With a checkpoint or too little memory, `resumable` takes the next nodes from a
`queue` and keeps what is finished in a `store`; `checkpoint` is the folder from which a killed training
continues. `sampling`, `memory` and `execution` estimate what a training takes and choose how to run it;
`scratch` puts working arrays into files. `cluster` runs the same training on Dask.
"""
