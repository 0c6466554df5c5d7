"""Trees, refined trees and one classifier per label: what quality costs."""
