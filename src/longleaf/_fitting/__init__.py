"""Training trees: in one go, or in parts that can be killed, kept on disk and joined again.

`trees` trains one tree after the other on `TrainingData`; `clustering` makes a tree from the centroids of
its labels. With a checkpoint or too little memory, `part_training` takes the next nodes from `part_queue` and
keeps what is finished in a `part_store`, and `parts` joins the weights; `checkpoint` is the folder that a
killed training goes on from. `memory` is an account of what a training holds, and `scratch` puts working
arrays into files.
"""
